"""Generative models as scorers: protocols of questions, readings of answers, chat endpoints.

`protocols` knows no transport, so that a model on this machine can be asked in the same way.
"""
