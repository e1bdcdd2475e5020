"""Measures of galleries: their names, values per query, means, what chance gives, and a run's tables."""
