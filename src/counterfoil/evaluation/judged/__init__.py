"""Agreement with people: correlation with ratings, accuracy on preferences, order of systems."""
