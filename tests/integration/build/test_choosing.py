"""Steps that choose among candidates and that drop ambiguous questions, with their calibration."""

import json
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from counterfoil import catalog
from counterfoil.build.rating import pair_scores
from counterfoil.build.step import StepContext
from counterfoil.build.steps.choose import LOW, OTHER, UNFIT, UNJUDGED, Choose
from counterfoil.build.steps.filter import AMBIGUOUS, FilterAmbiguous
from counterfoil.build.steps.filter import LOW as WEAK
from counterfoil.build.steps.filter import UNJUDGED as NOBODY
from counterfoil.build.steps.imagine import Imagine
from counterfoil.build.steps.read import ReadRows
from counterfoil.engine.session import Session
from counterfoil.errors import CounterfoilError, InputError
from counterfoil.models.base import Options


def work(folder: Path, step: str = "4-choose", seed: int = 0, notes: list[str] | None = None) -> StepContext:
    def scorer(name: str, settings: dict[str, str]):
        return catalog.scorer(name, Options(device="cpu", settings=dict(settings)))

    session = Session(note=lambda text: None if notes is None else notes.append(text))
    return StepContext(folder, seed, session, step=step, scorer=scorer)


@pytest.fixture(scope="module")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, pa.Table]:
    """60 rows of the world with four candidate images each, of which 61 % are wrong."""
    folder = tmp_path_factory.mktemp("candidates")
    rows = (
        ReadRows(n=60, size=48).run(pa.table({"id": pa.array([], pa.string())}), work(folder, "1-read")).kept
    )
    made = Imagine(k=4, failure=0.61, size=48).run(rows, work(folder, "2-imagine"))
    return folder, made.kept


def scored(rows: pa.Table, right: np.ndarray, apart: float = 2.0) -> pa.Table:
    """The rows with a column of scores that are higher for right ones."""
    noise = np.random.default_rng(0).normal(size=len(rows))
    return rows.append_column("fit", pa.array(apart * right + noise))


def right_of(rows: pa.Table, against: str | None = None) -> np.ndarray:
    from counterfoil.build.verification import fits

    found = fits(rows, "negative_image", "negative_caption", against)
    assert found is not None
    return found


def slow_choice(rows: list[dict], key: str) -> list[str]:
    best: dict[str, dict] = {}
    for row in rows:
        if row["of"] not in best or row[key] > best[row["of"]][key]:
            best[row["of"]] = row
    return [row["id"] for row in best.values()]


def test_the_best_by_a_column(drawn) -> None:
    folder, rows = drawn
    rows = scored(rows, right_of(rows))
    made = Choose(column="fit").run(rows, work(folder))
    assert made.kept["id"].to_pylist() == list(dict.fromkeys(rows["of"].to_pylist()))
    kept = slow_choice(rows.to_pylist(), "fit")
    by_id = {row["id"]: row for row in rows.to_pylist()}
    assert made.kept["fit"].to_pylist() == [by_id[name]["fit"] for name in kept]
    assert "of" not in made.kept.column_names
    assert made.reasons == {OTHER: 180}
    truth = made.facts["truth"]
    # The best of four is right more often than the first is.
    assert truth["precision"] > truth["first_candidates_right"] + 0.2
    assert sum(made.facts["places"]) == 60


def test_the_first_where_nothing_chooses(drawn) -> None:
    folder, rows = drawn
    made = Choose().run(rows, work(folder))
    assert made.kept["negative_image"].to_pylist() == rows["negative_image"].to_pylist()[::4]
    assert made.facts["places"] == [60]
    # A table without candidates stays as it is.
    again = Choose().run(made.kept, work(folder))
    assert again.kept.equals(made.kept)


def test_a_scorer_chooses_through_the_engine(drawn) -> None:
    folder, rows = drawn
    rows = rows.slice(0, 40)
    here = work(folder)
    cells, own, other = (rows[c].to_pylist() for c in ("negative_image", "negative_caption", "caption"))
    scorer = catalog.scorer("pixels:colours", Options(device="cpu"))
    margin = pair_scores(scorer, cells, own, here) - pair_scores(scorer, cells, other, here)
    wanted = slow_choice(rows.append_column("margin", pa.array(margin)).to_pylist(), "margin")
    made = Choose(scorer="pixels:colours", against="caption").run(rows, here)
    by_id = {row["id"]: row["negative_image"] for row in rows.to_pylist()}
    assert made.kept["negative_image"].to_pylist() == [by_id[name] for name in wanted]


def test_none_below_a_calibrated_threshold(drawn) -> None:
    folder, rows = drawn
    rows = scored(rows, right_of(rows, "caption"), 4.0).drop_columns(["of"])
    step = Choose(
        column="fit", against="caption", target_precision=0.75, verify=160, making=0.01, verifying=0.1
    )
    made = step.run(rows, work(folder))
    known, truth = made.facts["calibration"], made.facts["truth"]
    assert known["rows_chosen_on"] == known["rows_reported_on"] == 80
    for name in ("precision", "recall"):
        _, low, high = known["quality"][name]
        assert low <= truth[name] <= high
    assert truth["precision"] >= 0.75
    assert made.reasons == {LOW: len(rows) - len(made.kept)}
    assert known["per_1000_rows"]["price_per_right"] == pytest.approx(
        (10 + 16) / known["per_1000_rows"]["right_kept"]
    )
    assert json.dumps(made.facts)
    assert step.run(rows, work(folder)).kept.equals(made.kept)
    out_of_reach = Choose(column="fit", target_precision=0.99, verify=20).run(rows, work(folder))
    assert len(out_of_reach.kept) == 0
    assert out_of_reach.facts["calibration"]["threshold"] is None


def test_a_table_of_verified_rows(drawn, tmp_path: Path) -> None:
    folder, rows = drawn
    right = right_of(rows)
    rows = scored(rows, right).drop_columns(["of"])
    lines = [
        f"{name},{str(bool(t)).lower()}" for name, t in zip(rows["id"].to_pylist()[:100], right, strict=False)
    ]
    (tmp_path / "verified.csv").write_text("id,right\n" + "\n".join(lines) + "\n")
    verified = str(tmp_path / "verified.csv")
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


def test_people_choose(tmp_path: Path) -> None:
    rows = pa.table({"id": ["a#0", "a#1", "b#0", "b#1", "c#0", "c#1"], "of": list("aabbcc")})
    answers = tmp_path / "answers.csv"
    answers.write_text("id,annotator,answer\na#0,x,no\na#1,x,yes\na#1,y,yes\na#0,y,yes\nb#0,x,no\nb#1,x,no\n")
    made = Choose(people=str(answers)).run(rows, work(tmp_path))
    assert made.kept.to_pylist() == [{"id": "a"}]
    assert made.reasons == {UNFIT: 2, UNJUDGED: 2, OTHER: 1}
    choices = tmp_path / "choices.csv"
    choices.write_text("of,chosen\na,a#1\na,a#1\na,a#0\nb,\nb,b#0\nc,c#1\n")
    made = Choose(people=str(choices)).run(rows, work(tmp_path))
    assert made.kept["id"].to_pylist() == ["a", "c"]
    assert made.facts["places"] == [0, 2]
    assert made.reasons == {OTHER: 2, UNFIT: 2}
    choices.write_text("of,chosen\na,b#1\n")
    with pytest.raises(CounterfoilError, match=r"no candidate of its row; given: b#1; allowed: a#0, a#1"):
        Choose(people=str(choices)).run(rows, work(tmp_path))


def test_simulated_people_choose(drawn) -> None:
    folder, rows = drawn
    made = Choose(simulate=3, accuracy=0.9).run(rows, work(folder))
    assert made.facts["true"]["covered"]
    assert made.facts["truth"]["precision"] > 0.8
    assert set(made.reasons) == {OTHER, UNFIT}
    sure = Choose(simulate=1, accuracy=1.0, against="caption").run(rows, work(folder))
    right = right_of(rows, "caption").reshape(-1, 4)
    assert len(sure.kept) == right.any(axis=1).sum()
    assert sure.facts["places"] == np.bincount(right.argmax(axis=1)[right.any(axis=1)]).tolist()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scorer": "a", "column": "b"}, "one of people, simulate, scorer, column"),
        ({"threshold": 0.5}, "one of scores"),
        ({"column": "a", "threshold": 0.5, "target_precision": 0.9}, "one of them"),
        ({"column": "a", "target_precision": 0.9}, "needs verified rows"),
        ({"column": "a", "verify": 5, "verified": "x"}, "one of them"),
        ({"image": "caption"}, "image"),
        ({"scorer": "a", "set": ("b",)}, "KEY=VALUE"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Choose(**settings)


@pytest.fixture(scope="module")
def questions(drawn) -> pa.Table:
    """The first candidates: 60 questions of which many are wrong or ambiguous."""
    folder, rows = drawn
    return Choose().run(rows, work(folder)).kept


def test_simulated_people_and_their_label_noise(drawn, questions: pa.Table) -> None:
    folder, _ = drawn
    step = FilterAmbiguous(simulate=5, accuracy=0.85, bias=0.05, verify=30, verifying=0.05)
    made = step.run(questions, work(folder, "5-filter"))
    facts = made.facts
    assert facts["true"]["covered"]
    _, low, high = facts["estimated"]["label_noise"]
    assert low <= facts["true"]["label_noise"] <= high
    assert facts["answers"] == 300
    assert facts["cost"] == pytest.approx(15.0)
    assert facts["verified"]["rows"] == 30
    assert facts["truth"]["right_before"] < facts["truth"]["precision"]
    assert made.reasons == {AMBIGUOUS: 60 - len(made.kept)}
    assert json.dumps(facts)
    assert step.run(questions, work(folder, "5-filter")).kept.equals(made.kept)
    perfect = FilterAmbiguous(simulate=3, accuracy=1.0).run(questions, work(folder))
    assert perfect.facts["truth"]["precision"] == perfect.facts["truth"]["recall"] == 1.0


def test_people_who_answered_in_a_table(questions: pa.Table, tmp_path: Path) -> None:
    names = questions["id"].to_pylist()
    lines = [
        f"{name},p{k},{'no' if (at + k) % 3 == 0 else 'yes'}"
        for at, name in enumerate(names[:9])
        for k in (0, 1)
    ]
    path = tmp_path / "said.csv"
    path.write_text("id,annotator,answer\n" + "\n".join(lines) + "\n")
    notes: list[str] = []
    here = work(tmp_path, notes=notes)
    for rule, kept in (("majority", 3), ("any", 9), ("all", 3)):
        made = FilterAmbiguous(people=str(path), rule=rule).run(questions, here)
        assert len(made.kept) == kept
        assert made.reasons.get(NOBODY) == 51
        assert made.facts["estimated"] is None
    assert notes[0].startswith("fewer than three people")


def test_an_ensemble_of_scorers(drawn, questions: pa.Table) -> None:
    folder, _ = drawn
    few = questions.slice(0, 12)
    one = FilterAmbiguous(scorers=("pixels:colours",), threshold=0.0, verify=12).run(few, work(folder))
    margins = []
    scorer = catalog.scorer("pixels:colours", Options(device="cpu"))
    for row in few.to_pylist():
        score = partial(pair_scores, scorer, context=work(folder))
        sides = [
            score([row[image]], [row[own]])[0] - score([row[image]], [row[other]])[0]
            for image, own, other in (
                ("image", "caption", "negative_caption"),
                ("negative_image", "negative_caption", "caption"),
            )
        ]
        margins.append(min(sides))
    assert one.kept["id"].to_pylist() == [
        name for name, margin in zip(few["id"].to_pylist(), margins, strict=True) if margin >= 0
    ]
    assert set(one.reasons) <= {WEAK}
    assert one.facts["calibration"]["rows_reported_on"] == 12
    both = FilterAmbiguous(scorers=("pixels:colours", "blind:random"), threshold=0.6).run(few, work(folder))
    assert 0 < len(both.kept) < 12


def test_scorers_of_an_ensemble_have_settings_of_their_own(drawn, questions: pa.Table) -> None:
    folder, _ = drawn
    asked: dict[str, dict[str, str]] = {}

    def loaded(name: str, settings: dict[str, str]):
        asked[name] = dict(settings)
        return catalog.scorer(name, Options(device="cpu"))

    step = FilterAmbiguous(
        scorers=("pixels:colours", "blind:random"), set=("depth=2", "blind.seed=7=8"), threshold=0.5
    )
    step.run(questions.slice(0, 12), replace(work(folder), scorer=loaded))
    assert asked == {"pixels:colours": {"depth": "2"}, "blind:random": {"depth": "2", "seed": "7=8"}}


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"scorers": ("blind:random",), "set": ("lm.end=in",)}, "a scorer that is not named"),
        ({"scorers": ("blind:random",), "set": ("end",)}, "setting of the scorer"),
        ({"set": ("end=in",)}, "a scorer that is not named; given: end=in; allowed: none"),
        ({"simulate": 3, "people": "a.csv"}, "several ways"),
        ({"simulate": 3, "threshold": 0.5}, "one of scores"),
        ({"simulate": 3, "accuracy": 0.9, "bias": 0.3}, "chances are out of range"),
    ],
)
def test_filters_that_cannot_be(settings: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        FilterAmbiguous(**settings)


def test_nothing_to_filter_by(questions: pa.Table, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="nothing to filter by"):
        FilterAmbiguous().run(questions, work(tmp_path))
    with pytest.raises(InputError, match="simulated people need drawn rows"):
        FilterAmbiguous(simulate=3).run(questions.drop_columns(["scene"]), work(tmp_path))
