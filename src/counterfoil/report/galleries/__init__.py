"""Chapters on galleries."""
