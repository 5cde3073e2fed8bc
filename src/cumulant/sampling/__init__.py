"""Ways to draw the sample that a mechanism sees, one file each; what a scheme does not say is not claimed."""
