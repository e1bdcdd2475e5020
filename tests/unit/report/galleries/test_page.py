"""Tables, chapter and figures of galleries, and the data of the browser of queries."""

import json
from dataclasses import replace
from math import comb

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.benchmarks.answers import DirectionRanks, Rankings
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.evaluation.compare import compare
from counterfoil.metrics.class_rules import Plausible, precision_at_r
from counterfoil.metrics.ranks import Qrels
from counterfoil.metrics.ties import Ties
from counterfoil.report import figure_style, figures
from counterfoil.report.comparison_tables import differences, headline, main_measures, overview
from counterfoil.report.figure_style import spaced
from counterfoil.report.forms import FORMS, gallery as gallery_report
from counterfoil.report.forms.gallery import (
    CHANCE,
    FIRST,
    KS,
    NAMED,
    curves,
    first_right,
    kinds,
    marks,
    missed,
    recall_curves,
    right_answers,
    sample,
)
from counterfoil.report.page import page
from counterfoil.report.results import lead
from counterfoil.report.tables import written
from counterfoil.report.thumbnails import Thumbnails, to_json
from report.test_page import island
from report_fixtures import NASTY, gallery_benchmark, gallery_scores, rankings_of, run_of


def test_the_overview_has_a_block_per_direction_and_stands_beside_other_benchmarks(galleries, choices):
    table = overview(galleries, measures=headline(galleries))
    assert table.blocks == (("Image to text", 2), ("Text to image", 2), ("Mean of both", 2))
    assert [column.label for column in table.columns] == ["mAP@R", "R@1"] * 3
    assert [column.size for column in table.columns] == [29, 29, 59, 59, 88, 88]
    for row in table.rows[1:]:
        run = next(run for run in galleries.runs if run.name == row.name)
        for cell, column in zip(row.cells, table.columns, strict=True):
            side = column.measure.split("_")[0]
            values = run.items[column.measure]
            halves = [np.nanmean(half) for half in (values[:30], values[30:]) if not np.isnan(half).all()]
            assert len(halves) == (2 if side == "mean" else 1)
            assert written(cell, column) == f"{100 * np.mean(halves):.2f}"
    assert main_measures(galleries) == ("i2t_map_at_r", "t2i_map_at_r", "mean_map_at_r")
    table = overview(galleries, choices, finer=False)
    assert (table.blocks[0], table.blocks[-1]) == (("Drawn gallery: image to text", 1), ("Choices", 1))


def test_everything_has_all_measures_and_what_a_cut_ranking_cannot_say_is_empty(galleries):
    table = overview(galleries)
    labels = [column.label for column in table.columns[: table.blocks[0][1]]]
    assert labels[:2] == ["mAP@R", "R@1"]
    graded = {"graded R@1", "graded R-Precision"}
    assert {"R@5", "R@10", "R-Precision", "MRR", "nDCG"} | graded == set(labels[2:])
    cut = next(row for row in table.rows if row.name == "cut")
    empty = {column.measure for cell, column in table.cells(cut) if cell.value is None}
    assert empty == set(galleries.runs[2].result.provenance["gallery"]["unsupported"])


def test_queries_share_images_so_mcnemars_test_does_not_apply_and_the_mean_leads(galleries):
    pairs = differences(galleries, "mean_map_at_r")
    assert len(pairs.rows) == 3
    assert [column.label for column in pairs.columns] == ["Difference", "p", "p (Holm)"]
    value = galleries.runs[0].result.measures["mean_map_at_r"].value
    assert f"has mean mAP@R {100 * value:.2f}" in lead(galleries)


@pytest.mark.usefixtures("undrawn")
def test_a_page_of_galleries_alone_has_no_questions_and_says_what_is_a_sample(monkeypatch):
    benchmark = gallery_benchmark(8)
    comparison = compare([run_of(benchmark, "alone", rankings_of(benchmark, gallery_scores(8)["good"]))])[0]
    monkeypatch.setattr(gallery_report, "MOST_QUERIES", 10)
    text = page([comparison], pictures="never")
    assert 'id="questions"' not in text
    assert "Which differences are significant?" not in text
    assert island(text)["pictures"] == []
    # Of 24 queries 22 have a right answer.
    assert "Of 22 queries with a right answer 10 are here as a sample of all groups or directions. " in text


@pytest.mark.usefixtures("undrawn")
def test_groups_of_queries_have_a_table():
    benchmark = gallery_benchmark(8)
    labels = tuple("early" if i % 8 < 4 else "late" for i in range(24))
    grouped = replace(benchmark, questions=replace(benchmark.gallery, groupings={"when <asked>": labels}))
    run = run_of(grouped, "alone", rankings_of(grouped, gallery_scores(8)["good"]))
    (table,) = next(
        part for part in GALLERY.sections(compare([run])[0], "b-x") if part.key == "groups"
    ).tables
    assert table.caption == "Results on Drawn gallery by when <asked>."
    assert run.result.groups["late"]["t2i_map_at_r"].value in [cell.value for cell in table.rows[1].cells]


def test_a_gallery_of_one_direction_has_a_chapter_and_data():
    # Its images look for captions, and not the other way round.
    listed = gallery_benchmark(8)
    gallery, no_one = listed.gallery, RetrievalDirection(np.empty(0, np.int64), Qrels.of([]))
    alone = Gallery(gallery.ids[:8], i2t=gallery.i2t, t2i=no_one, owners=gallery.owners, n_images=8)
    benchmark = replace(listed, questions=alone)
    (result,) = compare([run_of(benchmark, "good", rankings_of(benchmark, gallery_scores(8)["good"]))])
    assert GALLERY.about(result.runs[0].benchmark) == "8 images look for 0 to 4 right captions among all 16."
    assert "has I2T mAP@R" in GALLERY.chapter(result, "b-x", "")["lead"]
    assert GALLERY.directions(result, "b-x") is None
    sections = GALLERY.sections(result, "b-x")
    assert [section.key for section in sections] == ["curves", "multiplicity"]
    assert "captions look for" not in sections[0].drawings[0].panels[0].lower()
    data = GALLERY.data(result, Thumbnails(), pictures=True, captions=True)
    # Of one image nothing is right.
    assert data["split"] == len(data["ids"]) == 7


@pytest.mark.usefixtures("undrawn")
def test_where_right_is_a_rule_there_is_no_curve_and_nothing_known_where_no_item_was_kept():
    benchmark, answers, _ = ruled()
    comparison = compare([run_of(benchmark, "ruled", answers)])[0]
    assert [section.key for section in GALLERY.sections(comparison, "b-x")] == ["multiplicity"]
    # The main measure is the only one, so there is no second table.
    assert GALLERY.everything(comparison) is None
    bare = replace(answers.i2t, top=answers.i2t.top[:, :0], top_scores=answers.i2t.top_scores[:, :0])
    assert not first_right(benchmark.gallery.i2t, bare).any()


def one(answers, *, policy=Ties.STRICT):
    return compare([run_of(gallery_benchmark(), "alone", answers, ties=policy)])[0]


def texts(comparison, kind):
    return [note.text for note in GALLERY.notes(comparison) if note.kind == kind]


def test_a_constant_model_is_anything_between_nothing_and_all_as_the_policy_of_ties_says():
    comparison = one(rankings_of(gallery_benchmark(), np.zeros((30, 60))))
    (text,) = [text for text in texts(comparison, "warning") if "ties" in text]
    # 29 image and 59 caption queries have a right answer, and with it a tie. Captions of image 0 to 29 find
    # all they look for at best; image 0 cannot, for one of its four right captions is outside the gallery.
    share = "alone ties a right and a wrong pair in 88 of 90 queries (97.78\N{NO-BREAK SPACE}%)"
    assert text.startswith(f"{share}: by how ties count, mean mAP@R is")
    untied = one(rankings_of(gallery_benchmark(), gallery_scores()["good"]))
    assert any("No model has a tie" in text for text in texts(untied, "fact"))
    answers = rankings_of(gallery_benchmark(), gallery_scores()["good"])
    said = {GALLERY.ties(one(answers, policy=policy)) for policy in Ties}
    assert len(said) == 3
    assert any(text.endswith("a tie is wrong.") for text in said)


def test_what_is_outside_undefined_cut_and_not_measured_is_said(galleries):
    # 29 images with two own captions and one in part, one of them with another that is nowhere.
    warnings, outside = texts(galleries, "warning"), "Right answers outside the gallery, never found: "
    assert [text for text in warnings if "outside" in text] == [f"{outside}1 of 88 captions."]
    for kind in ("image", "caption"):
        assert f"Without a right answer, left out: 1 {kind}." in texts(galleries, "fact")
    assert "cut: rankings are cut, the shortest after: image → text 12, text → image 12." in warnings
    (text,) = [text for text in warnings if text.startswith("cut: not measured: ")]
    assert "ndcg" in text
    assert "map_at_r" not in text


def test_about_counts_queries_and_right_answers():
    assert GALLERY.about(gallery_benchmark()) == (
        "30 images look for 0 to 4 right captions among all 60; "
        "60 captions look for 0 to 2 right images among all 30."
    )
    assert GALLERY.about(gallery_benchmark(parts=True)) == (
        "30 images look for 2 right captions among the 30 of their part; 60 captions look for 1 right image "
        "among the 15 of their part. Measures are means over 2 parts of the gallery."
    )


def recall(scores, search, k):
    """R@K counted from the scores, a tied wrong item before a right one."""
    hits = []
    for row, query in enumerate(search.queries):
        result = search.positives
        own = result.items[result.starts[row] : result.starts[row + 1]]
        if not len(own):
            continue
        wrong = np.delete(scores[query], own[own >= 0])
        hits.append(any((wrong >= scores[query, item]).sum() < k for item in own if item >= 0))
    return float(np.mean(hits))


def test_curves_are_recall_at_every_k_and_chance_that_of_a_random_order(galleries):
    gallery = galleries.runs[0].benchmark.gallery
    tables = gallery_scores()
    result = curves(galleries)
    assert list(result) == ["i2t", "t2i"]
    for side, search in (("i2t", gallery.i2t), ("t2i", gallery.t2i)):
        by_name = {curve.name: curve for curve in result[side]}
        for name, table in tables.items():
            scores = table if side == "i2t" else table.T
            curve = by_name[name]
            assert curve.ks == tuple(k for k in KS if k <= scores.shape[1])
            np.testing.assert_allclose(curve.values, [recall(scores, search, k) for k in curve.ks])
        # The ranking that was cut after 12 says no more, but where all right answers stood above that.
        assert by_name["cut"].ks[: len(KS[:7])] == KS[:7]
        known = by_name["cut"]
        np.testing.assert_allclose(known.values, by_name["good"].values[: len(known.ks)])
        assert max(by_name["cut"].ks) == 10 or recall(tables["good"], gallery.i2t, 12) == 1
    chance = result["t2i"][-1]
    assert chance.name == CHANCE
    # Of 30 images one or two are right: none of K drawn ones is with chance C(30 - r, K) / C(30, K).
    counts = [r for r in gallery.t2i.positives.counts.tolist() if r]
    expected = [np.mean([1 - comb(30 - r, k) / comb(30, k) for r in counts]) for k in chance.ks]
    np.testing.assert_allclose(chance.values, expected)


def test_in_parts_a_curve_is_the_mean_over_parts():
    benchmark = gallery_benchmark(31, parts=True)
    scores = np.random.default_rng(4).normal(size=(31, 62))
    # What other parts hold is never seen: their scores are the lowest.
    gallery = benchmark.gallery
    hidden = np.where(gallery.image_parts[:, None] == gallery.caption_parts[None], scores, scores.min() - 1)
    curve = curves(compare([run_of(benchmark, "parted", rankings_of(benchmark, scores))])[0])["i2t"][0]
    for k, value in zip(curve.ks, curve.values, strict=True):
        of_parts = [gallery.i2t.take(np.flatnonzero(gallery.image_parts == part)) for part in (0, 1)]
        assert value == pytest.approx(np.mean([recall(hidden, part, k) for part in of_parts]))


def test_lines_are_drawn_where_the_curves_are_and_named_at_their_end(galleries):
    result = curves(galleries)
    assert list(result) == ["i2t", "t2i"]
    for side, of in result.items():
        (axes,) = recall_curves(side, of).axes
        drawn = {tuple(np.round(line.get_ydata(), 6)) for line in axes.lines}
        assert {tuple(np.round(100 * curve.values, 6)) for curve in of} == drawn
        assert {text.get_text() for text in axes.texts} >= {curve.name for curve in of}
    one, again = (figure_style.svg(recall_curves("i2t", of), name="c", title="c") for _ in range(2))
    assert one == again


def test_of_many_models_the_best_are_named():
    benchmark, scores = gallery_benchmark(12), gallery_scores(12)["good"]
    noise = np.random.default_rng(2).normal(size=scores.shape)
    runs = [run_of(benchmark, f"m {i}", rankings_of(benchmark, scores + 0.2 * i * noise)) for i in range(10)]
    figure = recall_curves("i2t", curves(compare(runs)[0])["i2t"])
    assert len({text.get_text() for text in figure.axes[0].texts} - {""}) == NAMED + 1
    assert len(figure.axes[0].lines) == 11


def test_where_right_is_a_rule_there_is_no_curve_but_a_number_of_right_answers():
    rng = np.random.default_rng(6)
    codes, others = rng.random((20, 3)) < 0.5, rng.random((33, 3)) < 0.5
    for threshold in (0, 1):
        search = RetrievalDirection(np.arange(20), Plausible(codes, others, (threshold, 2)))
        expected = [sum((a != b).sum() <= threshold for b in others) for a in codes]
        assert right_answers(search).tolist() == expected


@given(st.lists(st.floats(0, 100), min_size=1, max_size=15))
def test_labels_keep_their_order_and_distance(wanted):
    heights = np.array(wanted)
    placed = spaced(heights, 5.0, 0.0, 100.0)
    assert (np.diff(placed[np.argsort(-heights, kind="stable")]) <= -5.0 + 1e-9).all()
    if len(wanted) == 1:
        assert placed[0] == wanted[0]


def test_two_directions_of_any_measure(galleries):
    (axes,) = figures.directions(galleries, ("i2t_map_at_r", "t2i_map_at_r")).axes
    assert axes.get_xlabel().startswith("I2T mAP@R: images look for captions")
    points = next(line for line in axes.lines if line.get_marker() == "o")
    np.testing.assert_allclose(
        points.get_xdata(), [100 * run.result.measures["i2t_map_at_r"].value for run in galleries.runs]
    )


def test_curves_follow_the_tie_policy():
    benchmark = gallery_benchmark()
    constant = rankings_of(benchmark, np.zeros((30, 60)))
    values = {}
    for policy in Ties:
        curve, chance = curves(compare([run_of(benchmark, "constant", constant, ties=policy)])[0])["i2t"]
        values[policy] = curve.values
        if policy is Ties.HALF:
            np.testing.assert_allclose(curve.values, chance.values)
    assert (values[Ties.OPTIMISTIC].min(), values[Ties.STRICT][0]) == (1, 0)


GALLERY = FORMS["gallery"]


def ruled(*, rounded=False):
    """A gallery in which right is a rule, a model's answers, and the scores behind them."""
    rng = np.random.default_rng(8)
    codes = rng.random((30, 4)) < 0.5
    listed = gallery_benchmark()
    of_captions = codes[listed.gallery.owners]
    i2t = RetrievalDirection(np.arange(30), Plausible(codes, of_captions))
    t2i = RetrievalDirection(np.arange(60), Plausible(of_captions, codes))
    gallery = replace(listed.gallery, i2t=i2t, t2i=t2i)
    benchmark = replace(
        listed, questions=gallery, card=listed.card.model_copy(update={"measures": ("pmrp",)})
    )
    scores = np.round(rng.normal(size=(30, 60))) if rounded else rng.normal(size=(30, 60))
    sides = []
    for search, table in ((gallery.i2t, scores), (gallery.t2i, scores.T)):
        right = search.positives.distances(slice(None)) == 0
        order = np.argsort(-table, axis=1, kind="stable")[:, :10].astype(np.int32)
        none, depth = np.empty(0, np.int64), np.full(len(table), table.shape[1])
        kept = np.take_along_axis(table, order, axis=1).astype(np.float32)
        shares = precision_at_r(table, right, cap=None)[None]
        sides.append(DirectionRanks(none, none, depth, order, kept, shares))
    return benchmark, Rankings(sides[0], sides[1]), scores


def gains(search, query):
    result = search.positives
    rows = slice(result.starts[query], result.starts[query + 1])
    return dict(zip(result.items[rows].tolist(), result.gains[rows].tolist(), strict=True))


@pytest.mark.parametrize("name", list(gallery_scores()))
@pytest.mark.parametrize("side", ["i2t", "t2i"])
def test_marks_places_and_what_is_missed_are_those_of_the_scores(name, side):
    benchmark = gallery_benchmark()
    scores = gallery_scores()[name]
    search = getattr(benchmark.gallery, side)
    placed = getattr(rankings_of(benchmark, scores), side)
    table = (scores if side == "i2t" else scores.T)[search.queries]
    top = placed.top[:, :FIRST].astype(np.int64)
    marked, places = marks(search, top), first_right(search, placed)
    left, there = missed(search, placed)
    for query, line in enumerate(table):
        right = gains(search, query)
        expected = [1 if right.get(i) == 1 else 2 if i in right else 0 for i in top[query].tolist()]
        assert marked[query].tolist() == expected
        present = [i for i in right if i >= 0]
        if not present:
            assert places[query].tolist() == [0, 0]
        else:
            best = max(line[i] for i in present)
            wrong = np.delete(line, present)
            assert places[query].tolist() == [(wrong > best).sum() + 1, (wrong >= best).sum() + 1]
        absent = [i for i in present if i not in top[query]]
        assert there[query] == bool(absent or -1 in right)
        if absent:
            score = max(line[i] for i in absent)
            assert line[left[query, 0]] == score
            assert left[query, 1:].tolist() == [(line > score).sum() + 1, (line >= score).sum()]
        elif there[query]:
            assert left[query].tolist() == [-1, 0, 0]


def test_in_a_cut_ranking_what_is_behind_the_end_is_missed_without_a_place():
    benchmark = gallery_benchmark()
    answers = rankings_of(benchmark, np.zeros((30, 60)) - np.arange(60), cut=12)
    # Every image ranks the captions as they stand: of image 20 all three are behind the twelfth.
    left, there = missed(benchmark.gallery.i2t, answers.i2t)
    assert there[20]
    assert left[20].tolist() == [40, 0, 0]
    assert first_right(benchmark.gallery.i2t, answers.i2t)[20].tolist() == [0, 0]


@pytest.mark.parametrize("policy", list(Ties))
def test_kinds_are_recall_at_one_and_at_five(policy):
    benchmark, scores = gallery_benchmark(), gallery_scores()["poor & <tied>"]
    run = run_of(benchmark, "tied", rankings_of(benchmark, scores), ties=policy)
    first, near = (
        np.fmax(run.items[f"i2t_recall_at_{k}"], run.items[f"t2i_recall_at_{k}"]) for k in (1, FIRST)
    )
    defined = benchmark.gallery.defined
    expected = np.where(first >= 1, 0, np.where(near >= 1, 1, 2))
    np.testing.assert_array_equal(kinds(run)[defined], expected[defined])


@pytest.mark.parametrize("rounded", [False, True])
def test_by_rule_places_are_looked_for_among_the_items_kept(rounded):
    benchmark, answers, scores = ruled(rounded=rounded)
    run = run_of(benchmark, "ruled", answers)
    right = benchmark.gallery.i2t.positives.distances(slice(None)) == 0
    result = first_right(benchmark.gallery.i2t, answers.i2t)
    kind = kinds(run)
    endless = 0
    for query in range(30):
        kept = answers.i2t.top[query]
        order = kept[:FIRST].astype(np.int64)
        marked = marks(benchmark.gallery.i2t, order[None].repeat(30, axis=0))
        assert marked[query].tolist() == right[query, order].tolist()
        if not right[query, kept].any():
            assert result[query].tolist() == [0, 0]
            assert kind[query] == 2
            continue
        best = scores[query, kept][right[query, kept]].max()
        line, wrong = scores[query], ~right[query]
        low, high = ((wrong & (line > best)).sum() + 1, (wrong & (line >= best)).sum() + 1)
        assert result[query, 0] == low
        if scores[query, kept[-1]] == best:
            endless += 1
            assert result[query, 1] == -1
            assert kind[query] == 2
        else:
            assert result[query, 1] == high
            assert kind[query] == (0 if high == 1 else 1 if high <= FIRST else 2)
    assert (endless > 0) == rounded
    data = GALLERY.data(compare([run])[0], Thumbnails(), pictures=False, captions=True)
    assert data["models"][0]["missed"] is None
    assert data["models"][0]["first"][:30] == result.tolist()


def test_all_queries_with_a_right_answer_are_shown_while_there_is_room(galleries, monkeypatch):
    gallery = galleries.runs[0].benchmark.gallery
    np.testing.assert_array_equal(sample(galleries), np.flatnonzero(gallery.defined))
    for most, images, captions in ((80, 29, 51), (40, 20, 20), (70, 29, 41)):
        monkeypatch.setattr(gallery_report, "MOST_QUERIES", most)
        rows = sample(galleries)
        assert ((rows < 30).sum(), (rows >= 30).sum()) == (images, captions)
        assert (np.diff(rows) > 0).all()
        assert gallery.defined[rows].all()
    # Three models share what there is room for.
    monkeypatch.setattr(gallery_report, "MOST_ANSWERS", 60)
    assert len(sample(galleries)) == 20
    assert sample(galleries).tolist() != sample(galleries, seed=1).tolist()


def test_the_data_lead_back_to_items_scores_and_pictures(galleries):
    data = json.loads(to_json(GALLERY.data(galleries, Thumbnails(), pictures=True, captions=True)))
    benchmark = galleries.runs[0].benchmark
    gallery = benchmark.gallery
    assert data["of"] == 88
    assert len(data["ids"]) == data["pictured"] == 88
    assert data["split"] == 29
    assert [NASTY, "text-4"] in data["captions"]
    row_of = {name: row for row, name in enumerate(gallery.ids)}
    for q, name in enumerate(data["ids"]):
        row = row_of[name]
        from_image = q < data["split"]
        search, at = (gallery.i2t, row) if from_image else (gallery.t2i, row - 30)
        asks, asked = (data["images"], data["captions"]) if from_image else (data["captions"], data["images"])
        assert asks[data["query"][q]][0 if from_image else 1] == name.split("/")[1]
        assert data["right"][q] == len(gains(search, at))
        for run, model in zip(galleries.runs, data["models"], strict=True):
            placed = run.answers.i2t if from_image else run.answers.t2i
            ids = [asked[i][1 if from_image else 0] for i in model["top"][q]]
            items = benchmark.captions if from_image else benchmark.images
            assert ids == [items[i].id for i in placed.top[at, :FIRST]]
            if model["scores"] is not None:
                np.testing.assert_allclose(model["scores"][q], placed.top_scores[at, :FIRST], rtol=1e-5)
    # Only an order is known of rankings that were given.
    assert [model["scores"] is None for model in data["models"]] == [False, False, True]
    assert data["best"] == 0
    assert all(number >= 0 for _, number in data["images"])


def test_pictures_go_to_both_directions_and_stay_within_the_budget(galleries):
    whole = Thumbnails()
    GALLERY.data(galleries, whole, pictures=True, captions=True)
    data = GALLERY.data(galleries, Thumbnails(sum(map(len, whole.uris)) // 2), pictures=True, captions=True)
    assert 0 < data["pictured"] < 88
    assert "1" in data["pictures"][: data["split"]]
    assert "1" in data["pictures"][data["split"] :]
    for q, there in enumerate(data["pictures"]):
        if q < data["split"]:
            shown = [data["query"][q]]
        else:
            shown = [i for model in data["models"] for i in model["top"][q] if i >= 0]
        assert there == "0" or all(data["images"][i][1] >= 0 for i in shown)


def test_what_was_not_kept_is_not_shown():
    benchmark = gallery_benchmark()
    answers = rankings_of(benchmark, gallery_scores()["good"], top=0)
    data = GALLERY.data(
        compare([run_of(benchmark, "bare", answers)])[0], Thumbnails(), pictures=False, captions=True
    )
    model = data["models"][0]
    assert model["top"][0] == [-1] * FIRST
    assert model["scores"] is None
    # Still known: where the first right answer stands.
    assert model["first"][0][0] >= 1
    assert model["missed"][0] != 0
