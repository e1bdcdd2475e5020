"""Whole experiments on the small world: build, train, measure, test claims."""
