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
from counterfoil.cli import main
from counterfoil.errors import CounterfoilError, InputError, UnknownNameError
from counterfoil.report import drawing
from counterfoil.studies import plan
from tiny_study import TINY

#: Of a training, what differs from one time to the next.
MEASURED = ("seconds", "rows_per_second", "waiting")


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


def test_pairs_are_pooled_and_annotators_measured(
    monkeypatch: pytest.MonkeyPatch, world: World, here: Path
) -> None:
    command(monkeypatch, "pool", *world.files(), "--k", 4, "--out", "pool.csv", "--json", "pool.json", "-q")
    found = cf.pool(world.files(), k=4, quiet=True)
    assert plain(found.to_json()) == written("pool.json")
    found.save("mine.csv")
    assert Path("mine.csv").read_bytes() == Path("pool.csv").read_bytes()
    with pytest.raises(InputError, match="overwrite"):
        found.save("mine.csv")
    check_tables(found, "pair", "model")
    assert found.plot().axes
    # Queries may be named one by one, and runs stand for their folders.
    some = cf.pool(
        [cf.load_run(world.run("one")), world.files()[1]], queries=["i2t/100", "t2i/3"], quiet=True
    )
    assert some.summary.queries == {"i2t": 1, "t2i": 1}

    answers = judged(world, Path("pool.csv"))
    command(
        monkeypatch, "bias", *world.files(), "--judgements", answers, "--draws", 100, "--json", "b.json",
        "--html", "b.html",
    )  # fmt: skip
    study = cf.bias(world.files(), answers, draws=100, quiet=True)
    assert plain(study.to_json()) == written("b.json")
    study.to_html("mine.html")
    assert Path("mine.html").read_text() == Path("b.html").read_text()
    check_tables(study, "annotators", "model")
    assert study.plot().axes


def test_captions_are_scored(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    dumped(here / "c.json", CANDIDATES)
    dumped(here / "r.json", REFERENCES)
    files = ("--candidates", "c.json", "--references", "r.json")
    outputs = ("--out", "s.csv", "--json", "s.json")
    command(monkeypatch, "captions", "score", *files, "--metrics", "bleu,cider", *outputs)
    found = cf.score_captions("c.json", ["bleu", "cider"], references="r.json", quiet=True)
    assert plain(found.to_json()) == written("s.json")
    found.save("mine.csv")
    assert Path("mine.csv").read_text() == Path("s.csv").read_text()
    check_tables(found, "metric", "caption")
    assert found.to_arrow(by="caption")["caption"].to_pylist() == list(CANDIDATES.values())
    with pytest.raises(InputError, match="needs a model"):
        cf.score_captions("c.json", "clip-s", images=here, quiet=True)


def test_captioning_systems_are_compared(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    texts = list(CANDIDATES.values())
    for shift, name in enumerate(("A", "B", "C")):
        moved = [*texts[shift:], *texts[:shift]]
        dumped(here / f"{name}.json", dict(zip(CANDIDATES, moved, strict=True)))
    dumped(here / "r.json", REFERENCES)
    Path("m.csv").write_text("system,M1\nA,0.9\nB,0.4\nC,0.2\n")
    systems = [f"{name}.json" for name in ("A", "B", "C")]
    command(
        monkeypatch, "captions", "systems", "--predictions", *systems, "--references", "r.json", "--humans",
        "m.csv", "--draws", 100, "--json", "s.json", "--html", "s.html", "--latex", "s.tex", "--markdown",
        "s.md",
    )  # fmt: skip
    found = cf.compare_systems(systems, "r.json", humans="m.csv", draws=100, quiet=True)
    assert plain(found.to_json()) == written("s.json")
    found.to_html("mine.html")
    assert Path("mine.html").read_text() == Path("s.html").read_text()
    assert found.to_latex() in Path("s.tex").read_text()
    assert found.to_markdown() in Path("s.md").read_text()
    check_tables(found, "system", "value")


@pytest.mark.models
def test_a_model_is_trained(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    pytest.importorskip("torch")
    rows = ["image,caption"]
    for number, colour in enumerate(("red", "green", "blue", "white") * 4):
        pixels = np.full((24, 24, 3), 15 * number, np.uint8)
        PIL.Image.fromarray(pixels).save(here / f"{number}.png")
        rows.append(f"{number}.png,a {colour} square {number}")
    Path("rows.csv").write_text("\n".join(rows))
    options = ("--batch-size", 4, "--steps", 4, "--device", "cpu", "--workers", 0)
    command(
        monkeypatch, "train", "coco", "--model", "small", "--data", "rows.csv", "--images", here, *options,
        "--out", "ckpt", "--json", "t.json", "-q",
    )  # fmt: skip
    changed = {"batch_size": 4, "steps": 4}
    common = {"images": here, "device": "cpu", "workers": 0, "quiet": True}
    found = cf.train_model("coco", "small", "rows.csv", out="mine", changed=changed, **common)
    kept = written("t.json")
    assert {**plain(found.to_json()), **dict.fromkeys(MEASURED)} == {**kept, **dict.fromkeys(MEASURED)}
    check_tables(found, "measure")
    figure = found.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(found.outcome.curves)
    drawing.save(figure, Path("training.png"))
    with PIL.Image.open("training.png") as opened:
        assert opened.size > (100, 100)
    weights = [next(Path(folder).glob("*.safetensors")).read_bytes() for folder in ("ckpt", "mine")]
    assert weights[0] == weights[1]
    # What was finished is not trained again; another folder's files are not replaced.
    again = cf.train_model("coco", "small", "rows.csv", out="mine", changed=changed, **common)
    assert again.outcome.since == 4
    with pytest.raises(InputError, match="another folder"):
        cf.train_model("coco", "small", "rows.csv", out=here, changed=changed, **common)


def test_votes_have_strengths(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    Path("v.csv").write_text("winner,loser,count\na,b,9\nb,a,4\nb,c,5\nc,b,3\na,c,6\nc,a,2\na,a,1\n")
    command(monkeypatch, "preferences", "v.csv", "--draws", 200, "--json", "v.json")
    found = cf.preferences("v.csv", draws=200)
    assert plain(found.to_json()) == written("v.json")
    check_tables(found, "name", "pair")
    assert found.plot().axes
    assert "1 vote" in str(found)
    with pytest.raises(CounterfoilError, match="itself"):
        cf.preferences("v.csv", self_votes="error")


def test_papers_are_reproduced(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    command(monkeypatch, "reproduce", "--paper", "bivlc", "--only", "same", "--json", "l.json")
    found = cf.reproduce(papers="bivlc", quiet=True)
    assert plain(found.only("same").to_json()) == json.loads(Path("l.json").read_text())
    check_tables(found, "number")
    assert len(found.entries) > len(found.only("same").entries)
    with pytest.raises(CounterfoilError, match="no such folder"):
        cf.reproduce(here / "none")


@pytest.mark.models
@pytest.mark.slow
def test_a_study_is_made(monkeypatch: pytest.MonkeyPatch, here: Path) -> None:
    pytest.importorskip("lightning_fabric")
    monkeypatch.setattr(plan, "SHORT", TINY)
    # The command goes on where the function left the study, and so only writes the report again.
    found = cf.study("mine", quiet=True)
    numbers = found.to_json()
    command(monkeypatch, "demo", "--full", "--out", "mine", "-q")
    other = written("mine/findings.json")
    assert {**numbers, "seconds": 0} == {**other, "seconds": 0}
    check_tables(found, "finding", "measure")
    assert found.plot().axes
    assert found.path == Path("mine/report.html")
