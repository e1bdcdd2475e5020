"""The chapters on rated and on preferred captions, and what their browser is given."""

import html as html_of
import io
import json
import re
from dataclasses import replace

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.videos import FrameFeatures, FrameFolder, Video
from counterfoil.evaluation.compare import Difference, compare
from counterfoil.report.comparison_tables import by_group, differences, leading, overview, ranking
from counterfoil.report.figure_style import svg
from counterfoil.report.forms import FORMS, rated as judged
from counterfoil.report.forms.rated import (
    MOST_LEVELS,
    NEAR,
    distance,
    levels,
    mid_ranks,
    points,
    rank_gaps,
    score_spread,
)
from counterfoil.report.page import page
from counterfoil.report.results import lead
from counterfoil.report.tables import to_markdown, written
from counterfoil.report.thumbnails import FRAMES, Thumbnails, strip, to_json
from report.judgements import preference_benchmark, rated_benchmark
from report_fixtures import run_of


def test_correlations_are_never_per_cent(rated):
    table = overview(rated)
    assert {column.style for column in table.columns} == {"correlation"}
    for cell, column in zip(table.rows[1].cells, table.columns, strict=True):
        assert written(cell, column) == f"{100 * rated.runs[0].result.measures[column.measure].value:.2f}"
    assert written(table.rows[3].cells[0], table.columns[0]).startswith("−")
    said = lead(rated)
    assert "%" not in said
    assert said.startswith("oracle has Kendall τ-c")
    assert "%" not in to_markdown(table)


def test_the_oracle_leads_and_what_has_no_value_comes_last_as_a_dash_with_its_reason(rated):
    table = overview(rated)
    constant = next(row for row in table.rows if row.name == "constant")
    assert {written(c, column) for c, column in zip(constant.cells, table.columns, strict=True)} == {"–"}
    texts = [note.text for note in FORMS["rated"].notes(rated)]
    (reason,) = [text for text in texts if "has no value" in text]
    assert "constant" in reason
    assert "all scores are equal" in reason
    (level,) = [text for text in texts if text.startswith("Pairs of captions")]
    assert "constant 100.00" in level
    assert "good" not in level
    assert leading(rated) == "kendall_tau_c"
    assert ranking(rated)[0] == "oracle"
    assert ranking(rated)[-2:] == ["against <b>", "constant"]


def test_the_question_that_people_answered():
    said = FORMS["rated"].about(rated_benchmark())
    assert said.startswith(
        "36 captions of 18 images, rated from 1 to 4 by up to 3 people: every rating is a point"
    )
    assert said.endswith("0 to 11 references each.")
    assert FORMS["preference"].about(preference_benchmark()) == (
        "20 pairs of captions of 20 images, each put before 48 people; in 1 both got as many votes, and the "
        "label was drawn."
    )


def test_differences_of_correlations_have_no_test_of_right_and_wrong(rated):
    difference = Difference("rated", "spearman", "good", "oracle", -0.21, -0.3, -0.1, 0.002, 0.004, None)
    table = differences(replace(rated, differences=(difference,)), "spearman")
    assert [column.label for column in table.columns] == ["Difference", "p", "p (Holm)"]
    assert [written(*cell) for cell in table.cells(table.rows[0])] == ["−21.00", "0.002", "0.004"]


def test_groups_of_correlations(rated):
    table = by_group(rated)
    assert [name for name, _ in table.blocks] == ["person", "machine <2>"]
    good = next(row for row in table.rows if row.name == "good")
    assert good.cells[0].value == rated.runs[1].result.groups["person"]["kendall_tau_c"].value
    # Correlations say much the same: one per group, or tables of many groups are too wide to read.
    assert {column.measure for column in table.columns} == {"kendall_tau_c"}


@pytest.mark.usefixtures("undrawn")
def test_a_page_where_nothing_has_a_value():
    alone = compare([run_of(rated_benchmark(8), "constant", Scores(np.ones(8)))])[0]
    assert FORMS["rated"].chapter(alone, "b-x", "")["lead"] == "No model has a value of Kendall τ-c."
    assert FORMS["rated"].measures(alone, "b-x") == []
    words = html_of.unescape(re.sub(r"<[^>]+>", " ", page([alone]))).split()
    assert "all scores are equal" in " ".join(words)


def test_points_are_all_ratings_that_somebody_gave(rated):
    run = rated.runs[1]
    ratings, scores = points(run)
    rows = zip(run.benchmark.judged.ratings.tolist(), run.answers.values.tolist(), strict=True)
    expected = [(rating, score) for row, score in rows for rating in row if not np.isnan(rating)]
    assert list(zip(ratings.tolist(), scores.tolist(), strict=True)) == expected


def test_every_point_is_in_the_column_of_its_rating():
    rng = np.random.default_rng(8)
    few = rng.integers(1, 6, 50).astype(float)
    labels, codes = levels(few)
    assert [float(labels[code]) for code in codes] == few.tolist()
    # A gap between the ratings leaves columns out.
    many = np.concatenate([rng.uniform(0, 1, 80), rng.uniform(4, 5, 40)])
    labels, codes = levels(many)
    assert len(labels) < MOST_LEVELS
    for rating, code in zip(many, codes, strict=True):
        low, high = map(float, labels[code].split("–"))
        assert low - 0.06 <= rating <= high + 0.06


def test_means_of_an_oracle_climb_and_of_its_opposite_fall(rated):
    for run, sign in ((rated.runs[0], 1), (rated.runs[2], -1)):
        (axes,) = score_spread(run).axes
        means = next(line for line in axes.lines if line.get_marker() == "o").get_ydata()
        ratings, scores = points(run)
        assert list(means) == pytest.approx([scores[ratings == r].mean() for r in np.unique(ratings)])
        assert (np.diff(means) * sign > 0).all()
        assert "rating" in svg(score_spread(run), name="x", title="x")


RATED, PREFERRED = FORMS["rated"], FORMS["preference"]


def test_places_are_those_counted_one_by_one():
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 40):
        scores, ratings = np.round(rng.normal(size=n), 1), rng.integers(1, 4, n).astype(float)
        expected = []
        # As the docstring says it, for each caption alone.
        for score, rating in zip(scores, ratings, strict=True):
            own = ((scores < score).sum() + (scores == score).sum() / 2) / n
            low, high = (ratings < rating).sum() / n, (ratings <= rating).sum() / n
            expected.append(own - low if own < low else own - high if own > high else 0.0)
        assert rank_gaps(scores, ratings) == pytest.approx(expected)


def test_a_model_in_the_order_of_people_has_distance_zero(rated):
    oracle, _, against, constant = rated.runs
    assert not distance(oracle).any()
    assert set(RATED.kinds(oracle).tolist()) == {0}
    assert (RATED.kinds(against) > 0).mean() > 0.5
    # Who says nothing puts all in the middle: too low what people put high, too high what they put low.
    mean = np.nanmean(oracle.benchmark.judged.ratings, axis=1)
    away = distance(constant)
    assert (away[mean == mean.max()] < 0).all()
    assert (away[mean == mean.min()] > 0).all()


def test_the_data_hold_judgements_and_scores(rated):
    data = RATED.data(rated, Thumbnails(), pictures=True, captions=True)
    json.loads(to_json(data))
    questions = rated.runs[0].benchmark.judged
    assert (data["ids"], data["kinds"]) == (list(questions.ids), list(RATED.KINDS))
    assert data["pictured"] == len(questions)
    for q, row in enumerate(questions.ratings.tolist()):
        assert data["ratings"][q] == [None if np.isnan(value) else value for value in row]
        caption = rated.runs[0].benchmark.captions[questions.captions[q]]
        assert data["captions"][data["candidates"][q][0][0]] == [caption.text, caption.id]
        total, first = data["references"][q]
        assert total == q % 12
        assert len(first) == min(total, judged.MOST_REFERENCES)
    good = data["models"][1]
    values = rated.runs[1].answers.values
    assert good["scores"] == [[pytest.approx(value, rel=1e-5)] for value in values]
    assert good["standing"] == pytest.approx((100 * mid_ranks(values)).round(1).tolist())
    assert [kind != "0" for kind in good["kinds"]] == (np.abs(np.array(good["away"])) > 100 * NEAR).tolist()


def test_a_preference_of_several_draws_shows_their_mean(preferred):
    data = PREFERRED.data(preferred, Thumbnails(), pictures=False, captions=True)
    drawn = preferred.runs[2].answers.values
    assert drawn.ndim == 3
    assert data["models"][2]["scores"] == pytest.approx(drawn.mean(axis=2), rel=1e-5)
    questions = preferred.runs[0].benchmark.judged
    assert questions.references is data["references"] is None
    assert (data["votes"], data["label"]) == (questions.votes.tolist(), questions.label.tolist())


def test_of_many_questions_a_part_is_carried_with_its_place_among_all(rated, monkeypatch):
    whole = RATED.data(rated, Thumbnails(), pictures=False, captions=True)
    monkeypatch.setattr(judged, "MOST_QUESTIONS", 9)
    part = RATED.data(rated, Thumbnails(), pictures=False, captions=True)
    assert (part["of"], len(part["ids"])) == (len(whole["ids"]), 9)
    assert set(part["groupings"][0]["codes"]) == {0, 1}
    for key in ("standing", "away"):
        by_id = dict(zip(whole["ids"], whole["models"][1][key], strict=True))
        assert part["models"][1][key] == [by_id[name] for name in part["ids"]]
    assert len(part["captions"]) < len(whole["captions"])


def test_a_video_is_a_strip_of_frames_and_features_are_none(tmp_path):
    for i in range(12):
        PIL.Image.new("RGB", (80, 60), (20 * i, 40, 90)).save(tmp_path / f"{i:02}.png")
    np.save(tmp_path / "features.npy", np.ones((4, 3), np.float32))
    video = Video("moving", FrameFolder(tmp_path, rate=2.0))
    with PIL.Image.open(io.BytesIO(strip(video))) as whole:
        # As wide as its frames, which differ from left to right.
        assert whole.width == FRAMES * 80 + 2 * (FRAMES - 1)
        reds = [whole.convert("RGB").getpixel((82 * i + 40, 30))[0] for i in range(FRAMES)]
    assert reds == sorted(set(reds))
    thumbnails = Thumbnails()
    features = Video("embedded", FrameFeatures(tmp_path / "features.npy"))
    assert list(thumbnails.add([video, features, Image("nothing")], [[0], [1], [2]])) == [0]
    assert not thumbnails.broken


def test_frames_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "0.png").write_bytes(b"no picture")
    thumbnails = Thumbnails()
    assert thumbnails.add([Video("cut off", FrameFolder(tmp_path))], [[0]]) == {0: 0}
    assert "0.png" in thumbnails.broken["cut off"]
