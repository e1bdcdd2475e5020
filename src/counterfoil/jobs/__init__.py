"""Whole jobs: the functions of Python and the commands of a shell."""
