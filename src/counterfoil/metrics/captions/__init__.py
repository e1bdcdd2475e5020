"""Metrics of captions as arithmetic: on words, on one embedding per item, on one per token and frame."""
