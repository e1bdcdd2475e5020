"""Detection of synthetic items, and what it alone gets on a quad benchmark (BiVLC section 5.3).

All functions take probabilities of being *synthetic*: item 0 of each question is natural, item 1 synthetic.
Exactly one half goes to "natural", as Python and PyTorch round.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.errors import InputError


def synthetic(probability: Float[ndarray, "..."]) -> Bool[ndarray, "..."]:
    """Whether a detector says "synthetic": a probability above one half.

    >>> synthetic(np.array([0.2, 0.5, 0.7]))
    array([False, False,  True])
    """
    return probability > 0.5


def accuracy(probability: Float[ndarray, "n 2"]) -> Float[ndarray, "n 2"]:
    """Whether each natural item (column 0) and each synthetic one (column 1) is detected as what it is.

    Values 0 and 1, chance 1/2; their mean is the detection accuracy of BiVLC Table 5.

    >>> accuracy(np.array([[0.1, 0.9], [0.6, 0.7]]))
    array([[1., 1.],
           [0., 1.]])
    """
    detected = synthetic(probability)
    return np.stack([~detected[:, 0], detected[:, 1]], axis=1).astype(np.float64)


def two_steps(
    captions: Float[ndarray, "n 2"], images: Float[ndarray, "n 2"]
) -> Mapping[str, Bool[ndarray, "n"]]:
    """The four single outcomes of a quad benchmark, answered by detectors of synthetic captions and images.

    First the query is classified; where that is right, the candidate is chosen that is likelier of the same
    kind. Equal probabilities are wrong. `contrast.from_directions` takes the result. Source: BiVLC, section
    5.3.

    >>> outcome = two_steps(np.array([[0.6, 0.7]]), np.array([[0.1, 0.9]]))
    >>> {name: bool(right[0]) for name, right in outcome.items()}
    {'ipos2t': True, 'ineg2t': True, 'tpos2i': False, 'tneg2i': True}
    """
    caption_found, image_found = accuracy(captions) == 1, accuracy(images) == 1
    right_caption = likelier(captions) == 1
    right_image = likelier(images) == 1
    return {
        "ipos2t": image_found[:, 0] & right_caption,
        "ineg2t": image_found[:, 1] & right_caption,
        "tpos2i": caption_found[:, 0] & right_image,
        "tneg2i": caption_found[:, 1] & right_image,
    }


def likelier(probability: Float[ndarray, "n 2"]) -> Float[ndarray, "n"]:
    """Whether the natural item of a pair is less likely synthetic than the other; equal is wrong.

    What a detector of captions gets on SugarCrepe without the image. Chance 1/2. Source: BiVLC, section 5.3.

    >>> likelier(np.array([[0.6, 0.7], [0.5, 0.5]]))
    array([1., 0.])
    """
    return (probability[:, 0] < probability[:, 1]).astype(np.float64)


def by_label(values: Float[ndarray, "m"], label: Float[ndarray, "m"]) -> Float[ndarray, "n 2"]:
    """Outputs in one column with labels 0 (natural) and 1 (synthetic), as one row per question.

    The k-th natural and the k-th synthetic output belong to question k, however they are interleaved. Raises
    `InputError` where they are not as many, or there are other labels.

    >>> by_label(np.array([0.1, 0.2, 0.8, 0.9]), np.array([0.0, 0.0, 1.0, 1.0]))
    array([[0.1, 0.8],
           [0.2, 0.9]])
    """
    natural, generated = values[label == 0], values[label == 1]
    if len(natural) != len(generated) or len(natural) + len(generated) != len(values):
        given = f"{len(natural)} of label 0, {len(generated)} of label 1, {len(values)} in all"
        raise InputError("detector outputs do not come in pairs", given=given, allowed="as many 0 as 1")
    return np.stack([natural, generated], axis=1)
