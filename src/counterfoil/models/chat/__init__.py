"""Generative models as scorers: protocols of questions, readings of answers, chat endpoints."""
