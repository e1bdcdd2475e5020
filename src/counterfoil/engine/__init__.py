"""The engine: the fewest computations that answer all questions, none of them twice.

`run` asks a scorer, `align` matches given answers to the questions. Nothing here loads a model itself.
"""
