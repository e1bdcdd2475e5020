"""The workshop: trainings from the same random weights, and nothing that two of them share."""

from itertools import combinations

import pytest

from counterfoil.benchmarks.forms import Quad
from counterfoil.evaluation.run import load_run
from counterfoil.report.study_page import TrainingSummary
from counterfoil.studies import plan
from counterfoil.studies.demo import DETECTORS
from counterfoil.studies.runs import FIRST, LEARNED, TUNED, TrainingRuns, world
from counterfoil.world.edits import SUBSETS
from tiny_study import TINY


def test_every_network_and_every_run_has_a_place(made, place):
    names = ("pretrained", *TUNED, *DETECTORS)
    networks = {path.name for path in (place / plan.NETWORKS).iterdir()}
    assert networks == {f"{name}-0" for name in (*names, "pac", *(f"{name}-first" for name in TUNED))}
    for name in names:
        found = {path.name for path in (place / plan.RUNS / f"{name}-0").iterdir()}
        more = set() if name in DETECTORS else {"world-gallery", "world-quads-alike"}
        assert found == {"world-quads", "world-choices"} | more
        run = load_run(place / plan.RUNS / f"{name}-0" / "world-quads")
        assert run.result.scorer == name


def test_steps_rows_and_curves_are_as_planned(made):
    assert [each.name for each in made.trained] == ["pretrained", *TUNED, "pac"]
    whole = TINY.relation_steps + TINY.steps
    sizes = {"pretrained": (whole, TINY.loose), "pac": (TINY.generated_steps, TINY.generated)}
    for each in made.trained:
        assert (each.steps, each.rows) == sizes.get(each.name, (whole, TINY.contrasts))
        assert each.learned == LEARNED[each.name]
        assert [row["step"] for row in each.history] == sorted({row["step"] for row in each.history})
        assert any("validation_group" in row for row in each.history), each.history


def test_what_is_watched_is_never_asked(tmp_path):
    watched = TrainingRuns(TINY, tmp_path).watched
    asked = world(TINY)[0]
    assert isinstance(asked.questions, Quad)
    assert not {c.text for c in watched.captions} & {c.text for c in asked.captions}


def test_pac_moves_projections_alone(place, made):
    from counterfoil.models import checkpoint

    one, other = (
        checkpoint.read(place / plan.NETWORKS / f"{name}-0").network.state_dict()
        for name in ("trohn-img", "pac")
    )
    moved = {name for name, weights in one.items() if not weights.equal(other[name])}
    # Normalisation counts on, as in all training.
    assert {name for name in moved if "running" not in name and "tracked" not in name} == {
        "visual.projection.weight",
        "text.projection.weight",
    }


def test_a_training_begins_with_relations_and_swaps(tmp_path, monkeypatch):
    seen = []

    def fit(self, backbone, name, recipe, data, seed, *, first=False):
        seen.append((name, first, sorted(set(data.groupings["subset"]))))
        return TrainingSummary(name, "", len(data), 1, 0.0)

    asked: list[str] = []
    monkeypatch.setattr("counterfoil.models.checkpoint.read", lambda place: asked.append(place.name))
    monkeypatch.setattr(TrainingRuns, "_fit", fit)
    workshop = TrainingRuns(TINY, tmp_path)
    workshop.tuned("coco", 0)
    assert seen == [
        ("coco-first", True, sorted(FIRST)),
        ("coco", False, sorted(SUBSETS)),
    ]
    # From random weights.
    assert asked == []


def test_the_trainings_begin_at_the_same_weights_and_part(place, made):
    torch = pytest.importorskip("torch")
    from counterfoil.models import checkpoint

    start, again = (TrainingRuns(TINY, place).untrained(seed=4).network.state_dict() for _ in range(2))
    assert all(one.equal(again[name]) for name, one in start.items())
    weights = {
        name: checkpoint.read(place / plan.NETWORKS / f"{name}-0").network.state_dict()
        for name in ("pretrained", *TUNED)
    }
    assert len({tuple(each) for each in weights.values()}) == 1
    flat = [torch.cat([w.double().flatten() for w in each.values()]) for each in weights.values()]
    assert not any(one.equal(other) for one, other in combinations(flat, 2))
