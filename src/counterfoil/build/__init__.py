"""Making of benchmarks and training sets: steps that turn rows into rows, and recipes of steps.

A **step** takes rows of captions and images and returns those that it keeps or makes, those that it drops
with a reason for each, and facts such as counts and curves. A **recipe** is a list of steps. A **build**
is a folder in which every step's rows are kept, so that a build that was stopped goes on where it was.
"""

from counterfoil.build.step import Output, Step, StepContext

__all__ = ["Output", "Step", "StepContext"]
