"""Models that write: the probability of an answer about a caption, and of the caption itself."""
