"""From answers to numbers with intervals, from runs to comparisons. Nothing here loads a model."""
