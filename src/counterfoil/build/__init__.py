"""Making of benchmarks and training sets: steps turn rows into rows, and a build keeps those of a recipe."""

from counterfoil.build.step import Output, Step, StepContext

__all__ = ["Output", "Step", "StepContext"]
