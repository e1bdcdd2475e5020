"""The detector baseline of BiVLC section 5.3: its rule, and its printed numbers from the released outputs."""

import numpy as np
import pytest
from hypothesis import given, strategies as st
from hypothesis.extra.numpy import arrays

from counterfoil.errors import InputError
from counterfoil.metrics import detection
from refusals import refuses

#: One half is among them, and equal ones are common.
PROBABILITIES = arrays(np.float64, (6, 2), elements=st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]))


def twin(captions, images):
    """The rule of FORMATS and section 5.3, with Python's own rounding, a question at a time."""
    (c0, c1), (i0, i1) = captions, images
    return {
        "ipos2t": round(i0) == 0 and c0 < c1,
        "ineg2t": round(i1) == 1 and c0 < c1,
        "tpos2i": round(c0) == 0 and i0 < i1,
        "tneg2i": round(c1) == 1 and i0 < i1,
    }


@given(PROBABILITIES, PROBABILITIES)
def test_two_steps_equal_the_rule_written_out(captions, images):
    result = detection.two_steps(captions, images)
    expected = [twin(c, i) for c, i in zip(captions.tolist(), images.tolist(), strict=True)]
    for name, right in result.items():
        assert right.tolist() == [row[name] for row in expected]


def test_one_half_is_natural_and_labels_pair_whatever_the_batches():
    assert detection.accuracy(np.array([[0.5, 0.5]])).tolist() == [[1.0, 0.0]]
    values = np.arange(8.0)
    label = np.array([0.0, 1, 0, 0, 1, 1, 0, 1])
    assert detection.by_label(values, label).tolist() == [[0, 1], [2, 4], [3, 5], [6, 7]]


@pytest.mark.parametrize("label", [[0.0, 0.0], [0.0, 1.0, 2.0], [1.0]])
def test_by_label_refuses_what_does_not_pair(label):
    refuses("in pairs", detection.by_label, np.zeros(len(label)), np.array(label), error=InputError)
