"""How sure can we be: intervals, tests and the seeded draws under them. Arrays in, numbers out."""
