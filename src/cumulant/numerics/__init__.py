"""Arrays and balls: numerical methods that know nothing about privacy."""
