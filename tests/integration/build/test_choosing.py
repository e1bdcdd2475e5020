"""Steps that choose among candidates and that drop ambiguous questions, with their calibration."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from build_fixtures import step_work
from counterfoil import catalog
from counterfoil.build.rating import pair_scores
from counterfoil.build.steps.filter import AMBIGUOUS, LOW, OTHER, UNFIT, UNJUDGED, Choose, FilterAmbiguous
from counterfoil.build.steps.imagine import Imagine
from counterfoil.build.steps.read import ReadRows
from counterfoil.build.verification import fits
from counterfoil.errors import CounterfoilError, InputError
from counterfoil.models.base import Options
from counterfoil.store import write_csv
from refusals import refuses

work = partial(step_work, step="4-choose")


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """60 rows of the world with four candidate images each, of which 61 % are wrong."""
    folder, nothing = tmp_path_factory.mktemp("candidates"), pa.table({"id": pa.array([], pa.string())})
    rows = ReadRows(n=60, size=48).run(nothing, work(folder, step="1-read")).kept
    return folder, Imagine(k=4, failure=0.61, size=48).run(rows, work(folder, step="2-imagine")).kept


def scored(rows, right, apart=2.0):
    """The rows with a column of scores that are higher for right ones."""
    noise = np.random.default_rng(0).normal(size=len(rows))
    return rows.append_column("fit", pa.array(apart * right + noise))


def right_of(rows, against=None):
    return np.asarray(fits(rows, "negative_image", "negative_caption", against))


def slow_choice(rows, numbers):
    """The image of the highest number of each row, the first of equal ones."""
    best = {}
    for row, number in zip(rows.to_pylist(), numbers, strict=True):
        if row["of"] not in best or number > best[row["of"]][0]:
            best[row["of"]] = number, row["negative_image"]
    return [image for _, image in best.values()]


def test_the_best_by_a_column(drawn):
    folder, rows = drawn
    rows = scored(rows, right_of(rows))
    made = Choose(column="fit").run(rows, work(folder))
    assert made.kept["id"].to_pylist() == list(dict.fromkeys(rows["of"].to_pylist()))
    assert made.kept["negative_image"].to_pylist() == slow_choice(rows, rows["fit"].to_numpy())
    assert "of" not in made.kept.column_names
    assert made.reasons == {OTHER: 180}
    truth = made.facts["truth"]
    # The best of four is right more often than the first is.
    assert truth["precision"] > truth["first_candidates_right"] + 0.2
    assert sum(made.facts["places"]) == 60


def test_the_first_where_nothing_chooses(drawn):
    folder, rows = drawn
    made = Choose().run(rows, work(folder))
    assert made.kept["negative_image"].to_pylist() == rows["negative_image"].to_pylist()[::4]
    assert made.facts["places"] == [60]
    # A table without candidates stays as it is.
    assert Choose().run(made.kept, work(folder)).kept.equals(made.kept)


def test_a_model_chooses_through_the_engine(drawn):
    folder, rows = drawn
    rows = rows.slice(0, 40)
    here = work(folder)
    cells, own, other = (rows[c].to_pylist() for c in ("negative_image", "negative_caption", "caption"))
    model = catalog.model("pixels:colours", Options(device="cpu"))
    margin = pair_scores(model, cells, own, here) - pair_scores(model, cells, other, here)
    made = Choose(model="pixels:colours", against="caption").run(rows, here)
    assert made.kept["negative_image"].to_pylist() == slow_choice(rows, margin)


def test_none_below_a_calibrated_threshold(drawn):
    folder, rows = drawn
    rows = scored(rows, right_of(rows, "caption"), 4.0).drop_columns(["of"])
    step = Choose(column="fit", against="caption", target_precision=0.75, verify=160)
    made = step.run(rows, work(folder))
    known, truth = made.facts["calibration"], made.facts["truth"]
    assert known["rows_chosen_on"] == known["rows_reported_on"] == 80
    for name in ("precision", "recall"):
        _, low, high = known["quality"][name]
        assert low <= truth[name] <= high
    assert truth["precision"] >= 0.75
    assert made.reasons == {LOW: len(rows) - len(made.kept)}
    assert json.dumps(made.facts)
    assert step.run(rows, work(folder)).kept.equals(made.kept)
    out_of_reach = Choose(column="fit", target_precision=0.99, verify=20).run(rows, work(folder))
    assert (len(out_of_reach.kept), out_of_reach.facts["calibration"]["threshold"]) == (0, None)


def test_a_table_of_verified_rows(drawn, tmp_path):
    folder, rows = drawn
    right = right_of(rows)
    rows = scored(rows, right).drop_columns(["of"])
    verified = str(tmp_path / "verified.csv")
    write_csv(Path(verified), pa.table({"id": rows["id"][:100], "right": right[:100]}))
    made = Choose(column="fit", threshold=1.0, verified=verified).run(rows, work(folder))
    kept = rows["fit"].to_numpy()[:100] >= 1.0
    assert made.facts["calibration"]["quality"]["precision"][0] == pytest.approx(right[:100][kept].mean())
    assert made.facts["calibration"]["quality"]["recall"][0] == pytest.approx(kept[right[:100]].mean())
    # Photographs have no scenes: their truth is in the table or nowhere.
    plain = rows.drop_columns(["scene", "negative_scene"])
    made = Choose(column="fit", threshold=1.0, verified=verified).run(plain, work(folder))
    assert "truth" not in made.facts
    with pytest.raises(InputError, match="only drawn rows"):
        Choose(column="fit", threshold=1.0, verify=10).run(plain, work(folder))


def test_people_choose(tmp_path):
    rows = pa.table({"id": ["a#0", "a#1", "b#0", "b#1", "c#0", "c#1"], "of": list("aabbcc")})
    answers = tmp_path / "answers.csv"
    answers.write_text("id,annotator,answer\na#0,x,no\na#1,x,yes\na#1,y,yes\na#0,y,yes\nb#0,x,no\nb#1,x,no\n")
    made = Choose(people=str(answers)).run(rows, work(tmp_path))
    assert (made.kept.to_pylist(), made.reasons) == ([{"id": "a"}], {UNFIT: 2, UNJUDGED: 2, OTHER: 1})
    choices = tmp_path / "choices.csv"
    choices.write_text("of,chosen\na,a#1\na,a#1\na,a#0\nb,\nb,b#0\nc,c#1\n")
    made = Choose(people=str(choices)).run(rows, work(tmp_path))
    assert (made.kept["id"].to_pylist(), made.facts["places"]) == (["a", "c"], [0, 2])
    assert made.reasons == {OTHER: 2, UNFIT: 2}
    choices.write_text("of,chosen\na,b#1\n")
    with pytest.raises(CounterfoilError, match=r"no candidate of its row; given: b#1; allowed: a#0, a#1"):
        Choose(people=str(choices)).run(rows, work(tmp_path))


def test_simulated_people_choose(drawn):
    folder, rows = drawn
    made = Choose(simulate=3, accuracy=0.9).run(rows, work(folder))
    assert made.facts["true"]["covered"]
    assert made.facts["truth"]["precision"] > 0.8
    assert set(made.reasons) == {OTHER, UNFIT}
    sure = Choose(simulate=1, accuracy=1.0, against="caption").run(rows, work(folder))
    right = right_of(rows, "caption").reshape(-1, 4)
    assert len(sure.kept) == right.any(axis=1).sum()
    assert sure.facts["places"] == np.bincount(right.argmax(axis=1)[right.any(axis=1)]).tolist()


@pytest.fixture(scope="module")
def questions(drawn):
    """The first candidates: 60 questions of which many are wrong or ambiguous."""
    folder, rows = drawn
    return Choose().run(rows, work(folder)).kept


def test_simulated_people_and_their_label_noise(drawn, questions):
    folder, _ = drawn
    step = FilterAmbiguous(simulate=5, accuracy=0.85, bias=0.05, verify=30)
    made = step.run(questions, work(folder, step="5-filter"))
    facts = made.facts
    assert facts["true"]["covered"]
    _, low, high = facts["estimated"]["label_noise"]
    assert low <= facts["true"]["label_noise"] <= high
    assert (facts["answers"], facts["verified"]["rows"]) == (300, 30)
    assert facts["truth"]["right_before"] < facts["truth"]["precision"]
    assert made.reasons == {AMBIGUOUS: 60 - len(made.kept)}
    assert json.dumps(facts)
    assert step.run(questions, work(folder, step="5-filter")).kept.equals(made.kept)
    perfect = FilterAmbiguous(simulate=3, accuracy=1.0).run(questions, work(folder))
    assert perfect.facts["truth"]["precision"] == perfect.facts["truth"]["recall"] == 1.0


def test_people_who_answered_in_a_table(questions, tmp_path):
    path = tmp_path / "said.csv"
    answers = [["yes", "no"][(i + k) % 3 == 0] for i in range(9) for k in (0, 1)]
    names = np.repeat(questions["id"].to_pylist()[:9], 2)
    write_csv(path, pa.table({"id": names, "annotator": ["p0", "p1"] * 9, "answer": answers}))
    notes = []
    here = work(tmp_path, note=notes.append)
    for rule, kept in (("majority", 3), ("any", 9), ("all", 3)):
        made = FilterAmbiguous(people=str(path), rule=rule).run(questions, here)
        assert (len(made.kept), made.reasons.get(UNJUDGED), made.facts["estimated"]) == (kept, 51, None)
    assert notes[0].startswith("fewer than three people")


def test_an_ensemble_of_models(drawn, questions):
    folder, _ = drawn
    few = questions.slice(0, 12)
    one = FilterAmbiguous(models=("pixels:colours",), threshold=0.0, verify=12).run(few, work(folder))
    model = catalog.model("pixels:colours", Options(device="cpu"))

    def margin(image, own, other):
        pictures = few[image].to_pylist()
        texts = (few[column].to_pylist() for column in (own, other))
        right, wrong = (pair_scores(model, pictures, captions, work(folder)) for captions in texts)
        return right - wrong

    captions = "caption", "negative_caption"
    lower = np.minimum(margin("image", *captions), margin("negative_image", *captions[::-1]))
    assert one.kept["id"].to_pylist() == few.filter(pa.array(lower >= 0))["id"].to_pylist()
    assert set(one.reasons) <= {LOW}
    assert one.facts["calibration"]["rows_reported_on"] == 12
    both = FilterAmbiguous(models=("pixels:colours", "blind:random"), threshold=0.6).run(few, work(folder))
    assert 0 < len(both.kept) < 12


def test_models_of_an_ensemble_have_settings_of_their_own(drawn, questions):
    folder, _ = drawn
    asked = {}

    def loaded(name, settings):
        asked[name] = dict(settings)
        return catalog.model(name, Options(device="cpu"))

    FilterAmbiguous(
        models=("pixels:colours", "blind:random"), set=("depth=2", "blind.seed=7=8"), threshold=0.5
    ).run(questions.slice(0, 12), replace(work(folder), model=loaded))
    assert asked == {"pixels:colours": {"depth": "2"}, "blind:random": {"depth": "2", "seed": "7=8"}}


@pytest.mark.parametrize(
    ("step", "settings", "message"),
    [
        (Choose, {"model": "a", "column": "b"}, "one of people, simulate, model, column"),
        (Choose, {"threshold": 0.5}, "one of scores"),
        (Choose, {"column": "a", "threshold": 0.5, "target_precision": 0.9}, "one of them"),
        (Choose, {"column": "a", "target_precision": 0.9}, "needs verified rows"),
        (Choose, {"column": "a", "verify": 5, "verified": "x"}, "one of them"),
        (FilterAmbiguous, {"models": ("blind:random",), "set": ("lm.end=in",)}, "model that is not named"),
        (FilterAmbiguous, {"models": ("blind:random",), "set": ("end",)}, "setting of the model"),
        (FilterAmbiguous, {"set": ("end=in",)}, "a model that is not named; given: end=in; allowed: none"),
        (FilterAmbiguous, {"simulate": 3, "people": "a.csv"}, "several ways"),
        (FilterAmbiguous, {"simulate": 3, "threshold": 0.5}, "one of scores"),
        (FilterAmbiguous, {"simulate": 3, "accuracy": 0.9, "bias": 0.3}, "chances are out of range"),
    ],
)
def test_settings_that_do_not_go_together(step, settings, message):
    refuses(message, step, error=InputError, **settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [({}, "nothing to filter by"), ({"simulate": 3}, "simulated people need drawn rows")],
)
def test_nothing_to_filter_by(settings, message, questions, tmp_path):
    with pytest.raises(InputError, match=message):
        FilterAmbiguous(**settings).run(questions.drop_columns(["scene"]), work(tmp_path))
