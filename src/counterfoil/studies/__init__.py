"""Whole experiments on the small world: build, train, measure, say what held."""
