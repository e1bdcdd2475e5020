"""Correlations against their formulas, and against the printed ones of P003 Table 6."""

import csv
import json
from math import isnan
from pathlib import Path

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.metrics import quad
from counterfoil.metrics.correlation import pearson, spearman


def test_pearson_by_hand() -> None:
    # Deviations (-1, 0, 1) and (-1, 1, 0): covariance 1 over sqrt(2 * 2); t = 0.5 / sqrt(0.75) on one degree
    # of freedom, whose two-sided tail is 1 - 2 * atan(t) / pi = 2 / 3.
    coefficient, p = pearson(np.array([1.0, 2.0, 3.0]), np.array([0.0, 2.0, 1.0]))
    assert coefficient == pytest.approx(0.5)
    assert p == pytest.approx(2 / 3)


def test_spearman_sees_ranks_only_and_shares_those_of_equals() -> None:
    x = np.array([1.0, 2.0, 2.0, 4.0])
    coefficient, _ = spearman(x, np.array([1.0, 10.0, 100.0, 1000.0]))
    # Ranks (1, 2.5, 2.5, 4) and (1, 2, 3, 4): covariance 4.5 over sqrt(4.5 * 5).
    assert coefficient == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


@pytest.mark.parametrize("correlation", [pearson, spearman])
def test_a_constant_column_is_undefined_and_two_rows_are_refused(correlation: object) -> None:
    assert callable(correlation)
    assert all(isnan(x) for x in correlation(np.ones(5), np.arange(5.0)))
    with pytest.raises(InputError, match="too few rows"):
        correlation(np.arange(2.0), np.arange(2.0))


#: P003 Table 6, right half: correlation of the group score with the caption length, and its p-value.
TABLE_6 = {
    "human": ("0.20", "0.00"),
    "vinvl": ("-0.20", "0.00"),
    "uniter_base": ("-0.14", "0.00"),
    "visualbert": ("-0.06", "0.22"),
    "vilt": ("-0.16", "0.00"),
    "lxmert": ("-0.11", "0.02"),
    "unit": ("-0.02", "0.73"),
    "flava_itm": ("-0.23", "0.00"),
    "clip": ("-0.22", "0.00"),
    "vse_coco_resnet_ft": ("0.01", "0.90"),
    "vsrn_coco": ("-0.05", "0.36"),
}


@pytest.mark.parametrize("model", TABLE_6)
def test_winoground_table_6_to_the_printed_digit(model: str, shared_data: Path) -> None:
    folder = shared_data / "winoground"
    with (folder / "tags.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    words = np.array([(int(r["caption_0_words"]) + int(r["caption_1_words"])) / 2 for r in rows])
    scores = np.zeros((len(rows), 2, 2))
    for line in (folder / "scores" / f"{model}.jsonl").read_text().splitlines():
        row = json.loads(line)
        example, caption, image = row["label"].split("_")
        scores[int(example), int(caption[1]), int(image[1])] = row["score"]
    coefficient, p = pearson(words, quad.group(scores))
    assert (f"{coefficient:.2f}", f"{p:.2f}") == TABLE_6[model]
