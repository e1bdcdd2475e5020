"""Negative captions: a parse of captions, words that exclude each other, and rules that change one thing."""
