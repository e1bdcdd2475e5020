"""Intervals, tests and the seeded draws under them. Arrays in, numbers out."""

import numpy as np
from numpy.typing import NDArray

#: Arrays of real numbers, of whole ones, and masks, of any shape.
Reals = NDArray[np.float64]
Wholes = NDArray[np.int64]
Truths = NDArray[np.bool_]
