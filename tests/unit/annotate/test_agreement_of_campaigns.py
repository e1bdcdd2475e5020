"""Agreement of a table of judgements: readings, kinds, what counts, and which questions are compared."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.annotate.agreement import campaign_agreement, counted, fields_of
from counterfoil.annotate.campaign import CampaignRecipe, create_folder
from counterfoil.annotate.forms.base import AnswerOption, FormField, WorkItem
from counterfoil.errors import InputError
from counterfoil.jobs.annotate_judgements import annotate_agreement
from counterfoil.metrics.agreement import ReliabilityData, Scale, krippendorff_alpha
from counterfoil.store import write_csv
from refusals import refuses


def judged(answers, question="best", **columns):
    """A table of judgements by item and person."""
    items, people = zip(*answers, strict=True)
    n = len(answers)
    given = {"item": items, "person": people, "question": [question] * n, "answer": list(answers.values())}
    return pa.table({**given, "seconds": [4.0] * n, "golden": pa.nulls(n, pa.bool_()), **columns})


@pytest.fixture(scope="module")
def best():
    """Two people choose the best of four images, or none, as in BiVLC's appendix H.3."""
    rng = np.random.default_rng(3)
    answers = {}
    for i in range(60):
        none = rng.random() < 0.4
        for person in ("ann", "bo"):
            own = none if rng.random() < 0.85 else not none
            answers[f"{i}", person] = "none" if own else str(rng.integers(4))
    return judged(answers, kind=["add" if i < 40 else "swap" for i in range(120)])


def best_field():
    images = tuple(str(i) for i in range(4))
    coarser = {"any or none": {**dict.fromkeys(images, "any"), "none": "none"}}
    return FormField("best", "?", options=tuple(map(AnswerOption, (*images, "none"))), coarser=coarser)


def test_the_coarser_reading_is_cohens_kappa_of_any_image_or_none(best):
    result = campaign_agreement(best, {"best": best_field()}, by_kind=False, draws=100)
    as_answered, coarser = result.questions
    assert (as_answered.reading, coarser.reading) == ("", "any or none")
    none = [row["answer"] == "none" for row in best.to_pylist()]
    expected = pytest.importorskip("sklearn.metrics").cohen_kappa_score(none[::2], none[1::2])
    assert (coarser.cohen.pairs, coarser.cohen.mean) == (1, pytest.approx(expected, abs=1e-12))
    assert coarser.people.raw.value > as_answered.people.raw.value


def pairs_on_blocks(rng):
    """Three pairs of people who do a block each, 40 queries of both directions, as in BiVLC's table 7."""
    answers, kinds = {}, []
    for block, pair in enumerate(("ab", "cd", "ef")):
        for i in range(40):
            truth = rng.integers(2)
            for person in pair:
                answers[f"{block}-{i}", person] = str(truth if rng.random() < 0.8 else 1 - truth)
                kinds.append(("i2t-0", "i2t-1", "t2i-0", "t2i-1")[i % 4])
    return judged(answers, kind=kinds)


def test_each_pair_of_people_has_a_kappa_in_each_direction():
    """Against scikit-learn's, of each pair's own answers."""
    metrics = pytest.importorskip("sklearn.metrics")
    table = pairs_on_blocks(np.random.default_rng(5))
    result = {item.kind: item for item in campaign_agreement(table, draws=100).questions}
    assert list(result) == ["", "i2t", "i2t-0", "i2t-1", "t2i", "t2i-0", "t2i-1"]
    rows = table.to_pylist()
    for kind in ("", "i2t", "t2i-1"):
        cohen = result[kind].cohen
        assert [pair[:2] for pair in cohen.each] == [("a", "b"), ("c", "d"), ("e", "f")]
        for first, second, kappa in cohen.each:
            one, two = (
                [r["answer"] for r in rows if r["person"] == who and r["kind"].startswith(kind)]
                for who in (first, second)
            )
            assert kappa.n == len(one) == (40 if not kind else 20 if kind == "i2t" else 10)
            assert kappa.value == pytest.approx(metrics.cohen_kappa_score(one, two), abs=1e-12)
            assert -1 <= kappa.low < kappa.value < kappa.high <= 1
        assert cohen.mean == pytest.approx(np.mean([kappa.value for *_, kappa in cohen.each]), abs=1e-12)


def test_agreement_is_a_table_text_page_and_json(tmp_path):
    write_csv(tmp_path / "judged.csv", pairs_on_blocks(np.random.default_rng(5)))
    result = annotate_agreement(tmp_path / "judged.csv", draws=100)
    assert "c and d" in str(result)
    assert [row["items"] for row in result.to_arrow().to_pylist()][:2] == [120, 60]
    row = result.to_arrow(by="pair").to_pylist()[1]
    assert (row["kind"], row["first"], row["second"], row["items"]) == ("", "c", "d", 40)
    assert row["cohen_low"] < row["cohen"] < row["cohen_high"]
    item = json.loads(json.dumps(result.to_json(), allow_nan=False))["questions"][0]["cohen"]["each"]
    ends = {"value": row["cohen"], "low": row["cohen_low"], "high": row["cohen_high"]}
    assert item[1] == {"people": ["c", "d"], "items": 40, **ends}
    # A page that may be passed on has numbers, as the paper's table.
    result.to_html(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8").replace("−", "-")
    raw, alpha = (result.to_json()["questions"][0][name] for name in ("raw", "alpha"))
    for text in (
        *("3 and 4", f"<span>{100 * raw['value']:.2f}</span>", f"<span>{alpha['value']:.4f}"),
        *(f"{100 * raw['low']:.1f} to {100 * raw['high']:.1f}", f"{alpha['low']:.4f} to {alpha['high']:.4f}"),
    ):
        assert text in page
    assert "c and d" not in page


def test_a_pair_of_one_answer_has_no_kappa_and_many_pairs_are_not_listed():
    answers = {(f"{i}", who): "yes" if who in "ab" or i % 2 else "no" for i in range(12) for who in "abc"}
    (result,) = campaign_agreement(judged(answers), draws=100).questions
    assert np.isnan(result.cohen.each[0][2].value)
    assert result.cohen.to_json()["each"][0]["value"] is None
    assert result.cohen.pairs == 2
    crowd = {(f"{i}", f"p{who}"): str((i + who) % 3) for i in range(10) for who in range(12)}
    (result,) = campaign_agreement(judged(crowd), draws=100).questions
    assert (result.cohen.pairs, result.cohen.each) == (66, ())


def test_kinds_have_rows_of_their_own_and_an_undecided_reading_keeps_values_that_it_does_not_name(best):
    result = campaign_agreement(best, draws=100)
    assert {item.kind: item.people.items for item in result.questions} == {"": 60, "add": 20, "swap": 40}
    assert [item.kind for item in campaign_agreement(best.slice(0, 40), draws=100).questions] == [""]
    field = replace(best_field(), coarser={"first or not": {"0": "first"}})
    result = campaign_agreement(best, {"best": field}, by_kind=False, draws=100).questions
    assert result[1].people.raw.value == result[0].people.raw.value


def test_golden_items_and_the_test_before_the_work_do_not_count():
    table = judged({("1", "a"): "yes", ("2", "a"): "no", ("3", "a"): "no"}, role=["work", "golden", None])
    assert counted(table).column("item").to_pylist() == ["1", "3"]
    golden = table.drop_columns(["role"]).set_column(5, "golden", pa.array([None, True, False]))
    assert counted(golden).column("item").to_pylist() == ["1"]
    refuses("no answers that count", campaign_agreement, golden.slice(1), error=InputError)


def test_scales_come_from_the_form_and_can_be_named():
    levels = ("no", "mostly no", "partly", "yes")
    rng = np.random.default_rng(1)
    answers = {}
    for i in range(40):
        place = int(rng.integers(4))
        for person in "abc":
            answers[f"{i}", person] = levels[int(np.clip(place + rng.integers(-1, 2), 0, 3))]
    table = judged(answers, "match")
    field = FormField("match", "?", options=tuple(map(AnswerOption, levels)), level="ordinal")
    (ordinal,) = campaign_agreement(table, {"match": field}, draws=100).questions
    (nominal,) = campaign_agreement(table, {"match": field}, scale=Scale.NOMINAL, draws=100).questions
    places = np.array([float(levels.index(word)) for word in answers.values()])
    items, people = zip(*answers, strict=True)
    expected = krippendorff_alpha(ReliabilityData.of(items, people, places), Scale.ORDINAL)
    assert ordinal.people.alpha.value == pytest.approx(expected, abs=1e-12)
    assert ordinal.people.alpha.value > nominal.people.alpha.value
    with pytest.raises(InputError, match=r"question 'match': has no place on a scale that is ordinal"):
        campaign_agreement(table, scale=Scale.ORDINAL, draws=100)


@pytest.mark.parametrize(
    ("kind", "options", "of_a", "of_b", "readings"),
    [
        ("many", ["colour", "count"], ["colour"], ["colour"], [("colour", 1), ("count", 1)]),
        ("spans", ["wrong"], [{"start": 0, "end": 3, "label": "wrong"}], [], [("wrong", 0)]),
    ],
)
def test_each_option_of_several_and_each_label_of_spans_is_a_question_of_its_own(
    kind, options, of_a, of_b, readings
):
    given = {"a": json.dumps(of_a), "b": json.dumps(of_b)}
    answers = {(f"{i}", person): cell for i in range(10) for person, cell in given.items()}
    if kind == "many":
        answers |= {(f"{i}", person): "[]" for i in range(0, 10, 2) for person in "ab"}
    field = FormField("why", "?", kind, options=tuple(map(AnswerOption, options)))
    result = campaign_agreement(judged(answers, "why"), {"why": field}, draws=100)
    assert [(item.reading, item.people.raw.value) for item in result.questions] == readings


def test_texts_are_not_compared_and_it_says_so():
    answers = {("1", "a"): "yes", ("1", "b"): "yes"}
    table = pa.concat_tables([judged(answers, "match"), judged(answers, "note")])
    result = campaign_agreement(table, {"note": FormField("note", "?", "text")}, draws=100)
    assert [item.question for item in result.questions] == ["match"]
    assert result.left_out == {"note": "texts are not compared"}


def test_fields_of_a_campaign_have_the_options_of_all_items(tmp_path):
    items = [
        WorkItem("1", {"caption": "A cat.", "images": ["a", "b"]}),
        WorkItem("2", {"caption": "A dog.", "images": ["a", "b", "c"]}),
    ]
    images = dict.fromkeys("abc", b"")
    recipe = CampaignRecipe(form="best-of-k", title="Cats", settings={"none": True})
    best = fields_of(create_folder(tmp_path / "campaign", recipe, items, images))["best"]
    assert set(best.values) == {"0", "1", "2", "none"}
    assert best.coarser["any or none"] == {"0": "any", "1": "any", "2": "any", "none": "none"}


def test_people_who_always_agree_have_ones_in_the_table_and_a_database_is_of_a_campaign(tmp_path):
    answers = {(f"{i}", who): "yes" if i % 2 else "no" for i in range(20) for who in "abcdefg"}
    write_csv(tmp_path / "judged.csv", judged(answers))
    result = annotate_agreement(tmp_path / "judged.csv", draws=100)
    (row,) = result.to_arrow().to_pylist()
    assert (row["items"], row["people"], row["answers"], row["cohen_pairs"]) == (20, 7, 140, 21)
    assert (row["raw"], row["alpha"], row["cohen"]) == (1, 1, 1)
    assert "100.00 [" in str(result)
    with pytest.raises(InputError, match="a database belongs to a campaign"):
        annotate_agreement(tmp_path / "table.csv", database="postgresql://there")
    refuses("no campaign", annotate_agreement, tmp_path, error=InputError)
