"""The page `cumulant serve`, and its HTTP interface for other languages.

Needs cumulant[web].
"""
