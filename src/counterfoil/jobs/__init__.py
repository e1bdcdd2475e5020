"""Whole jobs, called from Python (`counterfoil.api`) and from the command line; nothing here prints."""
