"""Outputs of a command: which files it may write, and the marks by which it knows its own again."""
