"""The Python API as a user writes it, and where only the core is installed, or the core and one extra."""

import csv
import json
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import counterfoil as cf
from counterfoil.engine.cache_keys import MEMO
from counterfoil.errors import CounterfoilError, InputError, ScoreError
from processes import python
from refusals import refuses

WORDS = ("a red cat", "a blue dog", "two birds", "an old house")
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def table(tmp_path, monkeypatch):
    """A table of eight quads beside its photographs, in the working folder; a cache of its own."""
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    rows = ["image,caption,negative_caption,negative_image,type"]
    for k in range(8):
        pixels = rng.integers(0, 256, (40, 32, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(tmp_path / "photos" / f"p{k}.png")
        kind = "swap" if k % 2 else "add"
        rows.append(f"p{k}.png,{WORDS[k % 4]} {k},{WORDS[(k + 1) % 4]} {k},p{(k + 1) % 8}.png,{kind}")
    (tmp_path / "my.csv").write_text("\n".join(rows) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "my.csv"


@pytest.fixture
def bench(table):
    return cf.load_benchmark("pairs", table, "photos")


def brightness(images, captions):
    return [float(np.asarray(image).mean()) + len(text) for image, text in zip(images, captions, strict=True)]


def test_a_benchmark_prints_what_it_holds(bench):
    assert repr(bench) == "<Benchmark pairs: 8 questions, 8 images, 16 captions>"


def test_a_function_is_a_model(bench, tmp_path):
    run = cf.evaluate(cf.as_model(brightness), bench, draws=100, quiet=True)
    assert run.name == "brightness"
    values = {image.id: np.asarray(image.decode()).mean() for image in bench.images}
    images = [values[image.id] for image in bench.images]
    texts = [len(caption.text or "") for caption in bench.captions]
    asked = zip(bench.paired.images, bench.paired.captions, strict=True)
    expected = [[[images[i] + texts[c] for i in row] for c in column] for row, column in asked]
    np.testing.assert_allclose(run.answers.values, expected)
    # Nothing tells another function of this name from it, so the user's cache keeps nothing.
    assert not (tmp_path / "cache").exists()


def test_a_function_with_a_version_is_asked_once(bench, tmp_path):
    asked = []

    def counting(images, captions):
        asked.append(len(images))
        return brightness(images, captions)

    first = cf.evaluate(cf.as_model(counting, version="1"), bench, draws=100, quiet=True)
    count = len(asked)
    again = cf.evaluate(cf.as_model(counting, version="1"), bench, draws=100, quiet=True)
    assert count
    assert len(asked) == count
    assert first.to_json()["measures"] == again.to_json()["measures"]
    cf.evaluate(cf.as_model(counting, version="2"), bench, draws=100, quiet=True)
    assert len(asked) == 2 * count
    with pytest.raises(InputError, match="cannot be kept"):
        cf.evaluate(cf.as_model(counting), bench, draws=100, cache=tmp_path / "named", quiet=True)


def test_what_a_function_gives_is_checked(bench):
    with pytest.raises(ScoreError, match=r"another shape.*one score per image and caption"):
        cf.evaluate(cf.as_model(lambda images, captions: [0.5], name="one"), bench, quiet=True)
    with pytest.raises(ScoreError):
        cf.evaluate(
            cf.as_model(lambda images, captions: [np.nan] * len(images), name="nan"), bench, quiet=True
        )


def test_what_is_no_model_is_refused():
    refuses("no function of images and captions", cf.as_model, 3, error=InputError)
    refuses(
        "no function of images and captions", cf.as_model, cf.load_model("blind:length"), error=InputError
    )


def cached(folder):
    """All in a cache but the list of digests of files: a file joins that once it is two seconds old."""
    return sorted(path for path in folder.rglob("*") if path.name != MEMO)


def test_a_torch_module_is_a_model(bench, table, tmp_path):
    torch = pytest.importorskip("torch")
    open_clip = pytest.importorskip("open_clip")
    from open_clip.transform import image_transform

    torch.manual_seed(0)
    model = open_clip.CLIP(
        embed_dim=16,
        vision_cfg={"image_size": 32, "layers": 1, "width": 32, "patch_size": 16, "head_width": 16},
        text_cfg={"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
    )
    model.train()
    parts = {"preprocess": image_transform(32, is_train=False), "tokenizer": open_clip.SimpleTokenizer()}
    refuses("needs its tokenizer", cf.as_model, model, preprocess=parts["preprocess"], error=InputError)
    mine = cf.as_model(model, name="tiny", **parts)
    # Another process prepares the images once; each imports the libraries of the model for itself.
    run = cf.evaluate(mine, bench, out="runs/tiny", draws=100, batch_size=4, workers=1, quiet=True)
    assert model.training
    # As the library itself compares them.
    model.eval()
    with torch.inference_mode():
        pixels = torch.stack([parts["preprocess"](image.decode()) for image in bench.images])
        images = torch.nn.functional.normalize(model.encode_image(pixels), dim=-1)
        texts = model.encode_text(parts["tokenizer"]([caption.text for caption in bench.captions]))
        cosines = (torch.nn.functional.normalize(texts, dim=-1) @ images.T).numpy()
    pairs = bench.paired
    expected = cosines[pairs.captions[:, :, None], pairs.images[:, None, :]]
    np.testing.assert_allclose(run.answers.values, expected, atol=1e-6)
    # Its weights are its identity: finished work is kept, and other weights are another model.
    kept = cached(tmp_path / "cache")
    assert kept
    again = cf.evaluate(mine, bench, draws=100, workers=0, quiet=True).to_json()
    assert again == {**run.to_json(), "provenance": again["provenance"]}
    assert cached(tmp_path / "cache") == kept
    with torch.no_grad():
        model.visual.proj.mul_(-1)
    other = cf.evaluate(mine, bench, draws=100, workers=0, quiet=True)
    np.testing.assert_allclose(other.answers.values, -run.answers.values, atol=1e-6)


def test_two_runs_are_compared_and_reported(bench, table):
    one = cf.evaluate("blind:length", "pairs", data=table, images="photos", out="runs/length", draws=100)
    other = cf.evaluate(cf.as_model(brightness), bench, out="runs/bright", draws=100, quiet=True)
    result = cf.compare([one, other], baseline=one, quiet=True)
    assert [(d.a, d.b) for d in result.differences] == [("brightness", "blind:length")] * 3
    assert [d.value for d in result.differences] == [
        pytest.approx(other.result[d.measure].value - one.result[d.measure].value) for d in result.differences
    ]
    assert list(result.to_frame()["measure"]) == [d.measure for d in result.differences]
    assert len(result.to_arrow(by="measure")) == len(one.to_arrow()) + len(other.to_arrow())
    for text in (str(result), result.to_markdown(), result.to_latex(), result.to_csv(), result._repr_html_()):
        assert "brightness" in text
    # The folders hold the same runs; one that was given no name is called after its folder.
    loaded = cf.compare(["runs"], quiet=True)
    assert sorted(run.name for run in loaded["pairs"].runs) == ["brightness", "length"]
    assert cf.load_run("runs/bright/pairs").to_json() == other.to_json()
    with pytest.raises(InputError, match="did you mean 'pairs'"):
        loaded["pair"]
    pytest.importorskip("matplotlib")
    assert result.plot() is not None
    assert one.plot(["group"]) is not None
    one.to_html("one.html")
    assert "blind:length" in Path("one.html").read_text()
    result.to_html("report.html")
    assert str(table.parent) not in Path("report.html").read_text()
    refuses("the file exists", result.to_html, "report.html", error=InputError)
    result.to_html("report.html", title="Mine", overwrite=True)
    assert "Mine" in Path("report.html").read_text()


def test_a_run_is_a_table_in_every_form(bench, monkeypatch):
    run = cf.evaluate(cf.as_model(brightness), bench, draws=100, quiet=True)
    group = run.result["group"]
    assert "group" in run.result
    assert str(group) == f"{group.value:.4f} [{group.low:.4f}, {group.high:.4f}]"
    with pytest.raises(InputError, match="did you mean 'group'"):
        run.result["groop"]
    table = run.to_arrow()
    row = {"benchmark": "pairs", "model": "brightness", "group": "", "measure": "group", "n": 8}
    (result,) = (item for item in table.to_pylist() if {**item, **row} == item)
    assert (result["value"], result["chance"]) == (group.value, group.chance)
    assert {item["group"] for item in table.to_pylist()} == {"", "add", "swap"}
    questions = run.to_arrow(by="question")
    assert questions["group"].to_pylist() == run.items["group"].tolist()
    assert questions["type"].to_pylist() == ["add", "swap"] * 4
    assert json.loads(json.dumps(run.to_json()))["measures"]["group"]["value"] == group.value
    assert str(run).startswith("brightness on my, 8 questions\nmeasure")
    assert repr(run).startswith("<EvaluationRun brightness on pairs: group ")
    assert "<table" in run._repr_html_()
    assert "<script" not in run._repr_html_()
    pandas = pytest.importorskip("pandas")
    assert isinstance(run.to_frame(), pandas.DataFrame)
    monkeypatch.setattr("counterfoil.jobs.results.find_spec", lambda name: None)
    assert isinstance(run.to_frame(), pa.Table)


def test_several_benchmarks_and_their_paths(bench, table):
    runs = cf.evaluate_all("blind:random", ["world-choices", bench], draws=100, quiet=True)
    assert [run.benchmark.name for run in runs] == ["world-choices", "pairs"]
    result = cf.evaluate("blind:length", "pairs", data={"pairs": table}, draws=100, limit=4, quiet=True)
    assert result.result["group"].n == 4


def test_errors_are_one_line(bench, table):
    for call in [
        *(lambda: cf.load_benchmark("winogrund"), lambda: cf.load_benchmark("pairs", "nowhere.csv")),
        *(lambda: cf.load_model("opn-clip:x"), lambda: cf.load_run("."), lambda: cf.compare([])),
        lambda: cf.evaluate("blind:length", "pairs", data="nowhere.csv"),
        lambda: cf.evaluate("blind:length", bench, ties="strikt"),
        lambda: cf.evaluate("blind:length", bench, interval="wilsn"),
        lambda: cf.evaluate("blind:length", bench, measures="groop"),
        lambda: cf.compare(["nowhere"]),
    ]:
        refuses("", call, error=CounterfoilError)


def test_notes_and_progress_go_where_they_are_wanted(bench, capsys):
    lines = []
    stages = []
    heard = {"note": lines.append, "progress": lambda *stage: stages.append(stage)}
    cf.evaluate(cf.as_model(brightness), bench, out="runs/b", draws=100, **heard)
    assert lines == ["run written to runs/b/pairs"]
    assert stages[-1][1] == stages[-1][2]
    assert capsys.readouterr() == ("", "")
    cf.evaluate("blind:length", bench, out="runs/c", draws=100)
    assert capsys.readouterr().err == "run written to runs/c/pairs\n"


@pytest.mark.parametrize("kind", ["records", "columns", "numpy", "arrow", "frame", "series"])
def test_a_table_in_memory_is_the_benchmark_of_its_file(bench, table, kind):
    with open(table, newline="") as file:
        rows = list(csv.DictReader(file))
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    held = {"records": rows, "columns": columns, "arrow": pa.table(columns)}.get(kind)
    if kind == "numpy":
        held = {name: np.array(cells) for name, cells in columns.items()}
    if kind in ("frame", "series"):
        pandas = pytest.importorskip("pandas")
        held = pandas.DataFrame(rows) if kind == "frame" else pandas.Series(rows)
    result = cf.load_benchmark("pairs", held, "photos")
    assert (result.digest, result.images) == (bench.digest, bench.images)
    run = cf.evaluate(cf.as_model(brightness), "pairs", data=held, images="photos", draws=100, quiet=True)
    assert run["i2t"] == cf.evaluate(cf.as_model(brightness), bench, draws=100, quiet=True)["i2t"]
    refuses("one benchmark that is named", cf.evaluate, "blind:length", bench, data=held, error=InputError)
    with pytest.raises(InputError, match="winoground: data in memory are a table of one's own"):
        cf.load_benchmark("winoground", held)


def test_pictures_in_memory_are_seen_as_they_are():
    rng = np.random.default_rng(1)
    pictures = [PIL.Image.fromarray(rng.integers(0, 256, (9, 7, 3), dtype=np.uint8)) for _ in range(4)]
    shown = enumerate(pictures)
    rows = [{"image": picture, "statement": f"it is {i}", "label": i % 2} for i, picture in shown]
    bench = cf.load_benchmark("statements", pytest.importorskip("pandas").DataFrame(rows))
    for image, picture in zip(bench.images, pictures, strict=True):
        np.testing.assert_array_equal(np.asarray(image.decode()), np.asarray(picture))
    assert cf.audit("statements", data=rows, draws=100, quiet=True, cache=None)["statements"]


@pytest.mark.parametrize("data", [3, [1, 2], [], {"image": 3}, {"image": []}, object(), [{"image": "a.jpg"}]])
def test_what_is_no_table_is_refused(data):
    refuses("data in memory", cf.load_benchmark, "pairs", data, error=InputError)


def test_questions_are_looked_at_one_by_one_and_as_a_table(bench):
    first = bench[0]
    assert (first["image"], first["negative_image"]) == tuple(bench.images[i] for i in bench.paired.images[0])
    assert (first["caption"], first["type"]) == ("a red cat 0", "add")
    assert bench[-1] == bench[7]
    with pytest.raises(IndexError):
        bench[8]
    result = bench.to_arrow()
    assert result["caption"].to_pylist() == [f"{WORDS[k % 4]} {k}" for k in range(8)]
    assert result["image"].to_pylist() == [f"p{k}.png" for k in range(8)]
    assert len(bench.to_frame()) == 8


def test_importing_loads_nothing_and_the_names_are_all_there():
    code = "import sys, counterfoil; print(len({'numpy', 'click', 'rich'} & set(sys.modules)))"
    assert python("-c", code).stdout.strip() == "0"
    assert set(cf.__all__) <= set(dir(cf))
    for name in cf.__all__:
        assert getattr(cf, name) is not None
    with pytest.raises(AttributeError, match="attribute evaluat"):
        cf.evaluat  # noqa: B018


def test_a_script_needs_no_guard_for_worker_processes(table):
    """Worker processes import the main module of Python; a script that has no guard would run again."""
    script = table.parent / "script.py"
    script.write_text(
        "from counterfoil.benchmarks.records import FileSource, Image\n"
        "from counterfoil.models.images import Untouched, prepared\n"
        "from pathlib import Path\n"
        "print('once')\n"
        "images = [Image(p.name, FileSource(p)) for p in sorted(Path('photos').iterdir())]\n"
        "print(sum(len(b) for b in prepared([images[:4], images[4:]], Untouched(), workers=2)))\n"
    )
    done = python(script)
    assert (done.returncode, done.stdout.split()) == (0, ["once", "8"]), done.stderr


SCRIPT = ROOT / "tests" / "support" / "public_names.py"
#: Python that finds none of the packages that standard input names, and runs the script that is named.
RUN = """
import runpy, sys
hidden = set(sys.stdin.read().split(","))
class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name in hidden:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Hiding())
runpy.run_path(sys.argv[1], run_name="__main__")
"""
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = sorted({*PROJECT["optional-dependencies"]} - {"docs", "dev"})


def installed_with(extra):
    """The distributions that `pip install 'counterfoil[EXTRA]'` brings, by what each requires."""
    result = set()
    waiting = [("counterfoil", extra), ("counterfoil", "")]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in result:
            continue
        result.add((name, extra))
        for needed in map(Requirement, required(name, extra)):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(needed.name), item) for item in ("", *needed.extras)]
    return {name for name, _ in result}


def required(name, extra):
    """What a distribution requires; what counterfoil does stands in its pyproject.toml."""
    if name == "counterfoil":
        return PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    return distribution(name).requires or []


def printed_with(extra):
    """What the script prints where the core and an extra are installed."""
    there = installed_with(extra)
    modules = packages_distributions().items()
    hidden = [name for name, owners in modules if not there & set(map(canonicalize_name, owners))]
    done = python("-c", RUN, SCRIPT, input=",".join(hidden))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    "extra", ["", "all", *(pytest.param(name, marks=pytest.mark.slow) for name in EXTRAS if name != "all")]
)
def test_every_name_resolves_or_names_its_extra(extra):
    said = printed_with(extra)
    assert said["missing"] == {}
    # The longer caption is the right one in all eight.
    assert said["accuracy"][0] == 1.0
    assert (said["rows"], said["differences"], said["audited"] > 0) == (8, 1, True)
