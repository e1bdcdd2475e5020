"""Measures that are added by one declaration: evaluated, compared, shown and listed like all others."""

import html

import numpy as np
import pytest

from counterfoil import catalog
from counterfoil.cli import app
from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evaluate import chance, evaluate
from counterfoil.metrics.measures import MEASURES, Measure, MeasureAtK
from counterfoil.metrics.ties import Ties
from counterfoil.report.page import page
from report_fixtures import (
    gallery_benchmark,
    gallery_scores,
    quad_answers,
    quad_benchmark,
    rankings_of,
    run_of,
)


def last_pair(scores, *, ties=Ties.STRICT):
    """Whether the second right pair scores above both wrong ones."""
    wrong = np.maximum(scores[:, 0, 1], scores[:, 1, 0])
    tied = {Ties.STRICT: 0.0, Ties.HALF: 1 / 3, Ties.OPTIMISTIC: 1.0}[ties]
    return np.where(scores[:, 1, 1] == wrong, tied, (scores[:, 1, 1] > wrong) * 1.0)


def found_at(k):
    def share(ranks, *, ties=Ties.STRICT):
        places = ranks.wrong + ranks.before + (ranks.tied if ties == Ties.STRICT else 0)
        result = np.bincount(ranks.query, weights=places < k, minlength=len(ranks.depth))
        many = ranks.positives.counts
        return np.divide(result, many, out=np.full(len(many), np.nan), where=many > 0)

    return Measure(f"found_at_{k}", "gallery", f"Found@{k}", f"found among the first {k}", "K/n", share)


QUAD = Measure("last_pair", "quad", "Last pair", "the second pair is above both wrong ones", "1/3", last_pair)
GALLERY = MeasureAtK(found_at, (3,))


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    monkeypatch.setattr(MEASURES, "_by_name", dict(MEASURES))
    monkeypatch.setattr(MEASURES, "_of", {})
    catalog.register(QUAD)
    catalog.register(GALLERY)


def test_a_measure_of_quads():
    benchmark, answers = quad_benchmark(), quad_answers()["good"]
    compared = compare([run_of(benchmark, "good", answers)])
    measured = compared[0].runs[0].result.measures["last_pair"]
    assert measured.value == pytest.approx(last_pair(answers.values).mean())
    assert measured.chance == chance(benchmark)["last_pair"] == 1 / 3
    text = html.unescape(page(compared))
    assert "Last pair" in text
    assert QUAD.meaning in text
    with pytest.raises(UnknownNameError, match="did you mean 'last_pair'"):
        evaluate(benchmark, answers, model="good", measures="last_pear")


@pytest.mark.usefixtures("undrawn")
def test_a_measure_of_galleries(capsys):
    benchmark = gallery_benchmark()
    rankings = rankings_of(benchmark, gallery_scores()["good"])
    compared = compare([run_of(benchmark, "good", rankings)])
    measures = compared[0].runs[0].result.measures
    both = [measures[f"{side}_found_at_3"].value for side in ("i2t", "t2i")]
    assert measures["mean_found_at_3"].value == pytest.approx(np.mean(both))
    assert 0 < measures["mean_found_at_3"].chance < 1
    asked = evaluate(benchmark, rankings, model="good", draws=100, measures="t2i_found_at_8")
    assert asked.measures["t2i_found_at_8"].value >= both[1]
    assert "<dt>Found@3</dt><dd>found among the first 3</dd>" in page(compared)
    app(["list", "measures"], standalone_mode=False)
    assert {"last_pair", "found_at_3", "found_at_K"} <= set(capsys.readouterr().out.split())
    with pytest.raises(UnknownNameError, match="did you mean 'found_at_3'"):
        evaluate(benchmark, rankings, model="good", measures="fuond_at_3")
