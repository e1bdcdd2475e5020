"""The data of the browser of queries: decided by counting, a bounded sample, silent where it must be."""

import json
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks.answers import DirectionRanks, Rankings
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.evaluation.compare import compare
from counterfoil.metrics.class_rules import Plausible, precision_at_r
from counterfoil.metrics.ranks import Qrels
from counterfoil.metrics.ties import Ties
from counterfoil.report.forms import FORMS
from counterfoil.report.forms import gallery as gallery_report
from counterfoil.report.forms.gallery import FIRST, first_right, kinds, marks, missed, sample
from counterfoil.report.thumbnails import Thumbnails, to_json
from report_fixtures import NASTY, gallery_benchmark, gallery_scores, rankings_of, run_of

SIDES = ("i2t", "t2i")
GALLERY = FORMS["gallery"]


def ruled(*, rounded=False):
    """A gallery in which right is a rule, a scorer's answers, and the scores behind them."""
    rng = np.random.default_rng(8)
    codes = rng.random((30, 4)) < 0.5
    listed = gallery_benchmark()
    of_captions = codes[listed.gallery.owners]
    gallery = replace(
        listed.gallery,
        i2t=RetrievalDirection(np.arange(30), Plausible(codes, of_captions)),
        t2i=RetrievalDirection(np.arange(60), Plausible(of_captions, codes)),
    )
    benchmark = replace(
        listed, questions=gallery, card=listed.card.model_copy(update={"measures": ("pmrp",)})
    )
    scores = np.round(rng.normal(size=(30, 60))) if rounded else rng.normal(size=(30, 60))
    sides = []
    for search, table in ((gallery.i2t, scores), (gallery.t2i, scores.T)):
        rule = search.positives
        right = rule.distances(slice(None)) == 0
        order = np.argsort(-table, axis=1, kind="stable")[:, :10].astype(np.int32)
        none, depth = np.empty(0, np.int64), np.full(len(table), table.shape[1])
        kept = np.take_along_axis(table, order, axis=1).astype(np.float32)
        shares = precision_at_r(table, right, cap=None)[None]
        sides.append(DirectionRanks(none, none, depth, order, kept, shares))
    return benchmark, Rankings(sides[0], sides[1]), scores


def gains(search, query):
    found = search.positives
    rows = slice(found.starts[query], found.starts[query + 1])
    return dict(zip(found.items[rows].tolist(), found.gains[rows].tolist(), strict=True))


@pytest.mark.parametrize("name", list(gallery_scores()))
@pytest.mark.parametrize("side", SIDES)
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
    scores = np.zeros((30, 60)) - np.arange(60)
    answers = rankings_of(benchmark, scores, cut=12)
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
    rule = benchmark.gallery.i2t.positives
    right = rule.distances(slice(None)) == 0
    found = first_right(benchmark.gallery.i2t, answers.i2t)
    kind = kinds(run)
    endless = 0
    for query in range(30):
        kept = answers.i2t.top[query]
        order = kept[:FIRST].astype(np.int64)
        assert (
            marks(benchmark.gallery.i2t, order[None].repeat(30, axis=0))[query].tolist()
            == right[query, order].tolist()
        )
        if not right[query, kept].any():
            assert found[query].tolist() == [0, 0]
            assert kind[query] == 2
            continue
        best = scores[query, kept][right[query, kept]].max()
        line, wrong = scores[query], ~right[query]
        low, high = ((wrong & (line > best)).sum() + 1, (wrong & (line >= best)).sum() + 1)
        assert found[query, 0] == low
        if scores[query, kept[-1]] == best:
            endless += 1
            assert found[query, 1] == -1
            assert kind[query] == 2
        else:
            assert found[query, 1] == high
            assert kind[query] == (0 if high == 1 else 1 if high <= FIRST else 2)
    assert (endless > 0) == rounded
    data = GALLERY.data(compare([run])[0], Thumbnails(), pictures=False, captions=True)
    assert data["models"][0]["missed"] is None
    assert data["models"][0]["first"][:30] == found.tolist()


def test_by_rule_nothing_is_known_where_no_item_was_kept():
    benchmark, answers, _ = ruled()
    bare = replace(answers.i2t, top=answers.i2t.top[:, :0], top_scores=answers.i2t.top_scores[:, :0])
    assert not first_right(benchmark.gallery.i2t, bare).any()


def test_all_queries_with_a_right_answer_are_shown_while_there_is_room(galleries, monkeypatch):
    gallery = galleries.runs[0].benchmark.gallery
    np.testing.assert_array_equal(sample(galleries), np.flatnonzero(gallery.defined))
    for most, images, captions in ((80, 29, 51), (40, 20, 20), (70, 29, 41)):
        monkeypatch.setattr(gallery_report, "MOST_QUERIES", most)
        rows = sample(galleries)
        assert ((rows < 30).sum(), (rows >= 30).sum()) == (images, captions)
        assert (np.diff(rows) > 0).all()
        assert gallery.defined[rows].all()
    # Three scorers share what there is room for.
    monkeypatch.setattr(gallery_report, "MOST_ANSWERS", 60)
    assert len(sample(galleries)) == 20
    assert sample(galleries).tolist() != sample(galleries, seed=1).tolist()


def test_the_data_lead_back_to_items_scores_and_pictures(galleries):
    thumbnails = Thumbnails()
    data = json.loads(to_json(GALLERY.data(galleries, thumbnails, pictures=True, captions=True)))
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
    thumbnails = Thumbnails(sum(map(len, whole.uris)) // 2)
    data = GALLERY.data(galleries, thumbnails, pictures=True, captions=True)
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


def one_way(n):
    """A comparison of one scorer on a gallery whose images look for captions, and not the other way round."""
    listed = gallery_benchmark(n)
    gallery = listed.gallery
    no_one = RetrievalDirection(np.empty(0, np.int64), Qrels.of([]))
    alone = Gallery(gallery.ids[:n], i2t=gallery.i2t, t2i=no_one, owners=gallery.owners, n_images=n)
    benchmark = replace(listed, questions=alone)
    return compare([run_of(benchmark, "good", rankings_of(benchmark, gallery_scores(n)["good"]))])[0]


def test_one_direction_alone_will_do():
    data = GALLERY.data(one_way(30), Thumbnails(), pictures=True, captions=True)
    assert data["split"] == len(data["ids"]) == 29
