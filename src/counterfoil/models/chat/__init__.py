"""Chat models: protocols of questions, readings of answers, endpoints."""
