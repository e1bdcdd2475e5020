"""The engine: the fewest computations that answer all questions, none of them twice."""
