"""Results and runs from Python say as much of themselves as those of the command line."""

from dataclasses import dataclass, field

import numpy as np
import pytest

from counterfoil import catalog
from counterfoil.benchmarks import Scores
from counterfoil.benchmarks.answers import versions
from counterfoil.benchmarks.folder import load, save
from counterfoil.benchmarks.tables import read_table
from counterfoil.benchmarks.training_files import read
from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import find_runs, load_run, save_run
from counterfoil.models.base import Identity, Options, identity_of
from counterfoil.models.baselines import load_blind as blind
from counterfoil.world import gallery, quads, rated
from refusals import refuses


@dataclass(eq=False)
class Linear:
    """Weighs the mean colour of a picture."""

    weights: np.ndarray
    identity: Identity = field(default_factory=lambda: Identity("linear"))

    def score(self, images, captions):
        means = np.stack([np.asarray(image.decode(), dtype=np.float64).mean((0, 1)) for image in images])
        return means @ self.weights


def test_a_run_saved_from_python_says_how_it_came_about(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["/home/someone/study.py", "--fast"])
    benchmark, scorer = quads(14, size=32), Linear(np.array([0.1, 0.2, 0.3]))
    answers = run(benchmark, scorer, session=Session(batch_size=5))
    result = evaluate(benchmark, answers, draws=200, seed=7)
    assert result.scorer == "linear"
    save_run(tmp_path / "run", benchmark, answers, result)
    manifest = load_run(tmp_path / "run").manifest
    # The weights that its identity does not name are digested.
    assert manifest["scorer"]["weights"] == identity_of(scorer).weights != ""
    assert manifest["scorer"]["name"] == "linear"
    assert manifest["versions"] == versions()
    assert {"counterfoil", "numpy", "python"} <= set(manifest["versions"])
    assert manifest["command"] == ["study.py", "--fast"]
    assert manifest["benchmark"]["digest"] == benchmark.digest
    assert manifest["benchmark"]["source"] == benchmark.source
    assert (manifest["machine"]["batch_size"], manifest["machine"]["device"]) == (5, "cpu")
    assert manifest["created"].startswith("20")
    assert result.provenance["scorer"] == manifest["scorer"]


@pytest.mark.parametrize(
    ("drawn", "scorer"),
    [
        (lambda: gallery(8, size=32), "pixels:colours"),
        (lambda: rated(8, size=32), "metric:cider"),
        (lambda: quads(7), "blind:random"),
    ],
    ids=("gallery", "rated", "quads"),
)
def test_every_kind_of_answers_is_signed(drawn, scorer):
    benchmark = drawn()
    answers = run(benchmark, catalog.scorer(scorer, Options(seed=3)))
    result = evaluate(benchmark, answers, draws=100)
    assert result.scorer == result.provenance["scorer"]["name"] == scorer
    assert result.provenance["benchmark"]["name"] == benchmark.name
    assert result.provenance["versions"] == versions()


def test_answers_of_ones_own_say_nothing_of_a_scorer(tmp_path):
    benchmark = quads(7)
    answers = Scores(np.zeros((7, 2, 2)))
    refuses("do not say which scorer gave them", evaluate, benchmark, answers, error=InputError)
    result = evaluate(benchmark, answers, scorer="mine", draws=100)
    assert "scorer" not in result.provenance
    saved = save_run(tmp_path, benchmark, answers, result, {"note": "by hand"})
    assert saved.manifest["scorer"] == {"name": "mine"}
    assert saved.manifest["note"] == "by hand"


def test_pac_s_through_another_model_says_so(tmp_path):
    from counterfoil.models.captions import embedding
    from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings

    given = PrecomputedEmbeddings(Identity("embeddings:a.npz", weights="a"), np.eye(4), np.eye(4))

    def title(name, **settings):
        options = Options(backbone="embeddings:a.npz", settings=settings)
        return embedding.load(name, options, lambda _: given).title

    assert title("pac-s") == "PAC-S formula through embeddings:a.npz"
    assert title("ref-pac-s") == "RefPAC-S formula through embeddings:a.npz"
    assert title("pac-s", model="pac-s") == title("clip-s") == ""


def test_benchmarks_runs_caches_and_tables(tmp_path):
    benchmark = quads(6, seed=0)
    save(benchmark, str(tmp_path / "set"))
    assert load(str(tmp_path / "set")).digest == benchmark.digest
    assert len(read(str(tmp_path / "set"), images=str(tmp_path))) == 6
    answers = run(benchmark, blind("constant"), session=Session(str(tmp_path / "cache")))
    result = evaluate(benchmark, answers, scorer="x", draws=100, measures="group")
    assert list(result.measures) == ["group"]
    save_run(str(tmp_path / "run"), benchmark, answers, result, {})
    assert load_run(str(tmp_path / "run")).result.measures == result.measures
    assert len(find_runs([str(tmp_path / "run")])) == 1
    (tmp_path / "a.csv").write_text("id,score\na,1\n")
    assert len(read_table(str(tmp_path / "a.csv"))) == 1
