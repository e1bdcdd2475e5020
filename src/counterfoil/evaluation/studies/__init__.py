"""Claims about runs: the numbers a claim rests on, its verdict, and sweeps of one setting."""
