"""Jobs from Python beside the same jobs from the command line: the same input gives the same output."""

import json
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest

import counterfoil as cf
from cli.annotator_world import World, judged, made
from cli.caption_samples import CANDIDATES, REFERENCES
from cli.caption_samples import written as dumped
from counterfoil.benchmarks.tables import read_table
from counterfoil.cli import main
from counterfoil.errors import CounterfoilError, InputError, UnknownNameError
from counterfoil.report import drawing
from counterfoil.studies import plan
from tiny_study import TINY


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COUNTERFOIL_DATA", raising=False)
    return tmp_path


@pytest.fixture
def world(here: Path) -> World:
    return made(here)


def command(monkeypatch: pytest.MonkeyPatch, *arguments: object) -> None:
    monkeypatch.setattr("sys.argv", ["counterfoil", *map(str, arguments)])
    with pytest.raises(SystemExit) as end:
        main()
    assert not end.value.code


def plain(value: object) -> object:
    """As JSON has it."""
    return json.loads(json.dumps(value, allow_nan=False))


def written(path: str) -> object:
    """What a command wrote."""
    return json.loads(Path(path).read_text())


def check_tables(found: object, *kinds: str) -> None:
    """The result is shown as text and HTML, and has rows of each kind and of no other."""
    assert str(found)
    assert "<table" in found._repr_html_()
    for by in kinds:
        table = found.to_arrow(by=by)
        assert isinstance(table, pa.Table)
        assert len(table)
        assert len(found.to_frame(by=by)) == len(table)
    assert found.to_arrow().equals(found.to_arrow(by=kinds[0]))
    with pytest.raises(UnknownNameError):
        found.to_arrow(by="moon")


def test_models_are_ranked(monkeypatch: pytest.MonkeyPatch, world: World, here: Path) -> None:
    folders = [world.run(name) for name in ("one", "two", "three")]
    files = ("--json", "r.json", "--html", "r.html", "--csv", "r.csv")
    command(monkeypatch, "rankings", *folders, "--draws", 100, *files)
    found = cf.rank(folders, draws=100, quiet=True)
    assert plain(found.to_json()) == written("r.json")
    assert found.to_csv() == Path("r.csv").read_text()
    found.to_html("mine.html")
    assert Path("mine.html").read_text() == Path("r.html").read_text()
    check_tables(found, "pair", "model")
    assert found.plot().axes
    with pytest.raises(InputError, match="overwrite"):
        found.to_html("mine.html")
    found.to_html("mine.html", overwrite=True)


def test_pairs_are_pooled_and_annotators_measured(world: World) -> None:
    pooled = cf.pool(world.files(), k=4, quiet=True)
    pooled.save("pool.csv")
    with pytest.raises(InputError, match="overwrite"):
        pooled.save("pool.csv")
    check_tables(pooled, "pair", "model")
    assert pooled.plot().axes
    # Queries may be named one by one, and runs stand for their folders.
    some = cf.pool(
        [cf.load_run(world.run("one")), world.files()[1]], queries=["i2t/100", "t2i/3"], quiet=True
    )
    assert some.summary.queries == {"i2t": 1, "t2i": 1}
    study = cf.bias(world.files(), judged(world, Path("pool.csv")), draws=100, quiet=True)
    study.to_html("mine.html")
    check_tables(study, "annotators", "model")
    assert study.plot().axes


def test_captions_are_scored_and_systems_compared(here: Path) -> None:
    texts = list(CANDIDATES.values())
    for shift, name in enumerate(("A", "B", "C")):
        moved = [*texts[shift:], *texts[:shift]]
        dumped(here / f"{name}.json", dict(zip(CANDIDATES, moved, strict=True)))
    dumped(here / "r.json", REFERENCES)
    scored = cf.score_captions("A.json", ["bleu", "cider"], references="r.json", quiet=True)
    check_tables(scored, "metric", "caption")
    scored.save("scores.csv")
    assert list(read_table(Path("scores.csv"))["caption"]) == texts
    with pytest.raises(InputError, match="needs a model"):
        cf.score_captions("A.json", "clip-s", images=here, quiet=True)
    Path("m.csv").write_text("system,M1\nA,0.9\nB,0.4\nC,0.2\n")
    systems = [f"{name}.json" for name in ("A", "B", "C")]
    compared = cf.compare_systems(systems, "r.json", humans="m.csv", draws=100, quiet=True)
    compared.to_html("mine.html")
    check_tables(compared, "system", "value")


@pytest.mark.models
def test_a_model_is_trained(here: Path) -> None:
    pytest.importorskip("torch")
    rows = ["image,caption"]
    for number, colour in enumerate(("red", "green", "blue", "white") * 4):
        pixels = np.full((24, 24, 3), 15 * number, np.uint8)
        PIL.Image.fromarray(pixels).save(here / f"{number}.png")
        rows.append(f"{number}.png,a {colour} square {number}")
    Path("rows.csv").write_text("\n".join(rows))
    changed = {"batch_size": 4, "steps": 4}
    common = {"images": here, "device": "cpu", "workers": 0, "quiet": True}
    found = cf.train_model("coco", "small", "rows.csv", out="mine", changed=changed, **common)
    check_tables(found, "measure")
    figure = found.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(found.outcome.curves)
    drawing.save(figure, Path("training.png"))
    with PIL.Image.open("training.png") as opened:
        assert opened.size > (100, 100)
    # What was finished is not trained again; another folder's files are not replaced.
    again = cf.train_model("coco", "small", "rows.csv", out="mine", steps=4, batch_size=4, **common)
    assert again.outcome.since == 4
    planned = cf.train_model("coco", "small", "rows.csv", changed=changed, dry_run=True, **common)
    check_tables(planned, "field")
    assert [stage.steps for stage in planned.stages] == [4]
    with pytest.raises(InputError, match="another folder"):
        cf.train_model("coco", "small", "rows.csv", out=here, changed=changed, **common)


def test_votes_have_strengths(here: Path) -> None:
    Path("v.csv").write_text("winner,loser,count\na,b,9\nb,a,4\nb,c,5\nc,b,3\na,c,6\nc,a,2\na,a,1\n")
    strengths = cf.preferences("v.csv", draws=200)
    check_tables(strengths, "name", "pair")
    assert strengths.plot().axes
    assert "1 vote" in str(strengths)
    with pytest.raises(CounterfoilError, match="itself"):
        cf.preferences("v.csv", self_votes="error")


def test_papers_are_reproduced(here: Path) -> None:
    ledger = cf.reproduce(papers="bivlc", quiet=True)
    assert cf.reproduce(papers="bivlc", only="same", quiet=True).entries == ledger.only("same").entries
    check_tables(ledger, "number")
    assert len(ledger.entries) > len(ledger.only("same").entries)
    assert cf.reproduce(files=True).to_arrow(by="file")["file"][0].as_py() in str(cf.reproduce(files=True))
    with pytest.raises(CounterfoilError, match="no such folder"):
        cf.reproduce(here / "none")


@pytest.mark.models
@pytest.mark.slow
def test_a_study_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("lightning_fabric")
    monkeypatch.setattr(plan, "SHORT", TINY)
    study = cf.study("mine", quiet=True)
    assert study.to_json() == written("mine/findings.json")
    check_tables(study, "finding", "measure")
    assert study.plot().axes
    assert study.path == Path("mine/report.html")
