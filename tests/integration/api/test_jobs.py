"""Results of jobs as Python has them: tables, figures, pages and files."""

from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest

import counterfoil as cf
from cli.annotator_world import NAMES, judged, made
from cli.caption_samples import CANDIDATES, REFERENCES, written as dumped
from counterfoil.errors import CounterfoilError, InputError, UnknownNameError
from counterfoil.report import figure_style
from refusals import refuses


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """A working folder with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("COUNTERFOIL_DATA", raising=False)
    return tmp_path


@pytest.fixture
def world(here):
    return made(here)


def check_tables(found, *kinds):
    """The result is shown as text and HTML, and has rows of each kind and of no other."""
    assert str(found)
    assert "<table" in found._repr_html_()
    for by in kinds:
        table = found.to_arrow(by=by)
        assert isinstance(table, pa.Table)
        assert len(table)
        assert len(found.to_frame(by=by)) == len(table)
    assert found.to_arrow().equals(found.to_arrow(by=kinds[0]))
    refuses("", found.to_arrow, error=UnknownNameError, by="moon")


def _pooled(world):
    pooled = cf.pool(world.files(), k=4, quiet=True)
    pooled.save("pool.csv")
    return pooled


def _biased(world):
    _pooled(world)
    return cf.bias(world.files(), judged(world, Path("pool.csv")), draws=100, quiet=True)


def _systems(world):
    texts = list(CANDIDATES.values())
    for shift, name in enumerate("ABC"):
        dumped(Path(f"{name}.json"), dict(zip(CANDIDATES, [*texts[shift:], *texts[:shift]], strict=True)))
    Path("m.csv").write_text("system,M1\nA,0.9\nB,0.4\nC,0.2\n")
    files, references = [f"{name}.json" for name in "ABC"], dumped(Path("r.json"), REFERENCES)
    return cf.compare_systems(files, references, humans="m.csv", draws=100, quiet=True)


def _scored(world):
    captions, references = dumped(Path("A.json"), CANDIDATES), dumped(Path("r.json"), REFERENCES)
    return cf.score_captions(captions, ["bleu", "cider"], references=references, quiet=True)


def _strengths(world):
    Path("v.csv").write_text("winner,loser,count\na,b,9\nb,a,4\nb,c,5\nc,b,3\na,c,6\nc,a,2\na,a,1\n")
    return cf.preferences("v.csv", draws=200)


#: Results of jobs, and their kinds of row.
RESULTS = {
    "rank": (lambda w: cf.rank([w.run(name) for name in NAMES], draws=100, quiet=True), "pair model"),
    "pool": (_pooled, "pair model"),
    "bias": (_biased, "annotators model"),
    "captions": (_scored, "metric caption"),
    "systems": (_systems, "system value"),
    "preferences": (_strengths, "name pair"),
    "reproduce": (lambda w: cf.reproduce(papers="bivlc", quiet=True), "number"),
}


@pytest.mark.parametrize("job", RESULTS)
def test_results_are_tables_figures_and_files(job, world):
    call, kinds = RESULTS[job]
    result = call(world)
    check_tables(result, *kinds.split())
    if hasattr(result, "plot"):
        assert result.plot().axes
    for method, file in (("to_html", "mine.html"), ("save", "mine.csv")):
        if hasattr(result, method):
            getattr(result, method)(file)
            refuses("overwrite", getattr(result, method), file, error=InputError)
            getattr(result, method)(file, overwrite=True)


def test_python_takes_more_than_a_shell(world):
    """Runs stand for their folders, queries and their answers for files."""
    sources = [cf.load_run(world.run("one")), world.files()[1]]
    assert cf.pool(sources, queries=["i2t/100", "t2i/3"], quiet=True).summary.queries == {"i2t": 1, "t2i": 1}
    refuses("no such folder", cf.reproduce, "none", error=CounterfoilError)
    ledger = cf.reproduce(papers="bivlc", quiet=True)
    assert len(ledger.entries) > len(ledger.only("same").entries)
    assert cf.reproduce(files=True).to_arrow(by="file")["file"][0].as_py() in str(cf.reproduce(files=True))


def test_a_model_is_trained(here):
    pytest.importorskip("torch")
    rows = ["image,caption"]
    for number, colour in enumerate(("red", "green", "blue", "white") * 4):
        PIL.Image.fromarray(np.full((24, 24, 3), 15 * number, np.uint8)).save(here / f"{number}.png")
        rows.append(f"{number}.png,a {colour} square {number}")
    Path("rows.csv").write_text("\n".join(rows))
    changed = {"batch_size": 4, "steps": 4}
    common = {"images": here, "device": "cpu", "workers": 0, "quiet": True}
    result = cf.train_model("coco", "small", "rows.csv", out="mine", changed=changed, **common)
    check_tables(result, "measure")
    figure = result.plot()
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(result.outcome.curves)
    figure_style.save(figure, Path("training.png"))
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


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("to_html(), argument 'path': wrong type", lambda run: run.to_html(3)),
        ("to_arrow(), argument 'by': wrong type", lambda run: run.to_arrow(by={})),
        ("plot(), argument 'measures': wrong type", lambda run: run.plot(3)),
        ("'device': wrong form; given: tpu", lambda run: cf.load_model("blind:length", device="tpu")),
        ("'column': wrong type", lambda run: cf.load_model("blind:length", column={})),
        ("model(), argument 'name': wrong type", lambda run: cf.as_model(len, name=object())),
        ("unsupported option; given: --set", lambda run: cf.audit("world-quads", settings={"a": "b"})),
        ("none: no such folder", lambda run: cf.train_model("coco", "small", "rows.csv", images="none")),
    ],
)
def test_what_is_no_value_of_an_argument_is_refused_in_a_line_that_names_it(line, call):
    run = cf.evaluate("blind:length", "world-quads", limit=2, draws=100, cache=None, quiet=True)
    assert line in refuses("", call, run, error=InputError)
