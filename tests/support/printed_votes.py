"""The votes of ECCV Caption between five kinds of ranking, as printed."""

import numpy as np

# ECCV Caption Table D.1: row preferred to column, for A (only the first is wrong), B (only the first is
# right), C (the first five are wrong), D (only the fifth is right), E (all wrong).
PRINTED = np.array(
    [
        [0, 231, 66, 111, 316],
        [89, 0, 21, 79, 328],
        [254, 299, 0, 273, 343],
        [185, 217, 23, 0, 287],
        [28, 16, 1, 9, 24],
    ]
)
