"""Ways to draw the sample that a mechanism sees, one file each.

A scheme is registered by its file; it claims only what it states.
"""
