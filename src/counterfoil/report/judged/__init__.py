"""Chapters on captions that people rated or preferred."""
