"""The engine: the fewest computations that answer all questions, none of them twice.

`run` asks a scorer, `align` matches given answers to the questions. Nothing here loads a model itself.
"""

from counterfoil.engine.align import align
from counterfoil.engine.plan import Note, Progress, silent
from counterfoil.engine.run import run
from counterfoil.engine.session import Session

__all__ = ["Note", "Progress", "Session", "align", "run", "silent"]
