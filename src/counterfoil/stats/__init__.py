"""Intervals, tests and the seeded draws under them. Arrays in, numbers out."""
