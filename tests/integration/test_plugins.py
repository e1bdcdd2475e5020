"""Another package adds a benchmark, a model, a measure, a caption metric, a recipe and two kinds of form.

The package is `examples/plugin`. Its entry points are put where an installer puts them, beside the package,
and everything, forms of question and of work too, is used through commands that find them there.
"""

import json
import os
from contextlib import closing
from pathlib import Path

import pytest

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import BENCHMARKS, Card
from counterfoil.benchmarks.forms import FormEntry
from counterfoil.errors import InputError
from counterfoil.models.registry import ModelEntry
from counterfoil.registry import Registry, resolve
from plugin_site import PLUGIN, install
from refusals import refuses
from warm_shell import WarmShell

ROOT = Path(__file__).resolve().parents[2]
COLOURS = ("red", "green", "blue")


class Installed:
    """A folder beside one of installed packages, and a process that runs commands with these."""

    def __init__(self, site):
        self.site = site
        self.folder = site.parent
        self._shell = WarmShell(self.folder, PYTHONPATH=f"{site}{os.pathsep}{ROOT / 'src'}")
        self.close = self._shell.close

    def __call__(self, *arguments, code=0):
        done = self._shell.run(["counterfoil", *map(str, arguments)])
        assert done.code == code, done.err
        return done


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """Commands where the plugin is installed."""
    made = Installed(install(tmp_path_factory.mktemp("plugin") / "site"))
    yield made
    made.close()


def result(command, *arguments):
    """The result of a command that prints it as JSON."""
    return json.loads(command(*arguments).out)


def test_benchmark_and_model_from_another_package(command):
    out = command.folder / "squares"
    hue = ("evaluate", "example-hue:primary", "example-squares", "--out", out / "hue", "--json", "-")
    measured = result(command, *hue)
    # Of six pairs of colours three have yellow, which the model does not know: its caption loses everywhere.
    assert (measured["measures"]["group"]["value"], measured["groups"]["red"]["group"]["n"]) == (0.5, 3)
    command("evaluate", "blind:constant", "example-squares", "--out", out / "constant")
    assert "hue" in command("compare", out / "hue", out / "constant", "--html", out / "report.html").out
    page = (out / "report.html").read_text()
    assert "Coloured squares" in page
    assert "a yellow square" in page
    # A measure comes with the same package: of a pair without yellow both right pairs score higher.
    assert measured["measures"]["pairs_right"]["value"] >= 0.5
    assert measured["measures"]["pairs_right"]["chance"] == 1 / 3
    assert "<dt>Pairs right</dt>" in page
    assert "pairs_right" in command("list", "measures").out
    assert "example-squares" in command("list", "benchmarks").out
    assert "example-hue:COLOURS" in command("list", "models").out
    wrong = command("evaluate", "example-hue:all", "example-squares", code=2)
    assert wrong.err.strip().startswith("counterfoil: example-hue: unknown set of colours; given: all")
    assert wrong.err.count("\n") == 1


def test_form_of_work_from_another_package(command):
    assert "example-mood" in command("annotate", "forms").out
    facts = json.loads(command("annotate", "forms", "example-mood", "--json", "-").out)
    assert (facts["columns"], facts["settings"]) == ({"image": "image"}, {"words": "The words."})


def test_form_of_question_from_another_package(command):
    folder = command.folder
    runs = folder / "runs"
    measured = ("example-hue:primary", "example-degrees", "--out", runs / "hue", "--json", "-")
    hue = result(command, "evaluate", *measured)
    # "a square" names no colour, so it scores below a wrong one: of three pairs of captions two are in order.
    assert hue["measures"]["concordance"]["value"] == pytest.approx(2 / 3)
    assert hue["measures"]["accuracy"]["value"] == 0
    assert hue["measures"]["accuracy"]["chance"] == pytest.approx(1 / 6)
    assert hue["groups"]["red"]["concordance"]["n"] == 2
    # The benchmark's folder, and given scores, as of any form.
    command("benchmarks", "save", "example-degrees", "--out", folder / "degrees")
    rows = [f"{name}-{other},3,2,2" for name in COLOURS for other in COLOURS if name != other]
    (folder / "given.csv").write_text("\n".join(["id,s0,s1,s2", *rows]) + "\n")
    scored = ("given:given.csv", folder / "degrees", "--ties", "half", "--json", "-")
    given = result(command, "evaluate", *scored)
    assert given["measures"]["concordance"]["value"] == pytest.approx(2.5 / 3)
    assert given["measures"]["accuracy"]["value"] == 0.5
    command("evaluate", "blind:constant", "example-degrees", "--out", runs / "constant")
    compared = command("compare", runs / "hue", runs / "constant", "--html", folder / "report.html")
    assert "Concordance" in compared.out
    page = (folder / "report.html").read_text()
    assert "Each holds an image and 3 captions, the truest first." in page
    assert "<dt>Concordance</dt>" in page
    assert '"in order"' in page
    assert "concordance" in command("list", "measures").out


def test_caption_metric_from_another_package(command):
    (command.folder / "candidates.json").write_text(json.dumps({"a": "aha", "b": "sky"}))
    score = ("captions", "score", "--candidates", "candidates.json", "--metrics", "vowels", "--json", "-")
    assert result(command, *score)["metrics"]["vowels"]["value"] == pytest.approx((2 / 3 + 0) / 2)
    assert "vowels" in command("list", "metrics").out


def test_recipe_with_its_loss_from_another_package(command):
    pytest.importorskip("torch")
    folder = command.folder
    command("world", "build", "training", "--n", "24", "--size", "48", "--out", folder / "rows")
    files = ("--model", "small", "--data", folder / "rows", "--out", folder / "ckpt")
    how = ("--batch-size", 8, "--epochs", 2, "--workers", 0, "--device", "cpu", "--quiet")
    command("train", "sigmoid", *files, *how)
    assert (folder / "ckpt" / "model.safetensors").is_file()
    assert json.loads((folder / "ckpt" / "card.json").read_text())["facts"]["recipe"]["name"] == "sigmoid"
    unknown = command("train", "sigmoids", "--model", "small", "--data", "x", "--out", "y", code=2)
    assert "did you mean 'sigmoid'?" in unknown.err


def test_the_form_of_work_is_shown_in_full():
    source = (PLUGIN / "counterfoil_example" / "mood.py").read_text()
    assert f"```python\n{source}```" in (ROOT / "docs" / "forms-of-work.md").read_text()


def test_a_package_that_cannot_be_imported_is_a_line_where_it_is_named(tmp_path):
    points = (
        "[counterfoil.models]\nbroken = counterfoil_missing:ENTRY\nother = counterfoil_example.vowels:ENTRY"
    )
    (tmp_path / "t.csv").write_text("image,caption,negative_caption\na.jpg,a cat,a dog\n")
    with closing(Installed(install(tmp_path / "site"))) as command:
        (command.site / "counterfoil_example-1.0.dist-info" / "entry_points.txt").write_text(points)
        broken = command("evaluate", "broken:x", "pairs", "--data", "t.csv", code=2)
        assert broken.err.count("\n") == 1
        assert "package counterfoil-example: cannot be imported; given: ModuleNotFoundError" in broken.err
        other = command("evaluate", "other:x", "pairs", "--data", "t.csv", code=2)
        assert "its entry point is no ModelEntry called 'other'" in other.err
        # Everything else goes on.
        command("evaluate", "blind:length", "pairs", "--data", "t.csv")


def test_register_adds_an_entry_for_this_process():
    entry = ModelEntry("mine", "X", "a model", "mine:x", "somewhere:load")
    registry = Registry("kind of model", ModelEntry, "counterfoil.nothing", lambda: (), name="prefix")
    registry.register(entry)
    assert registry["mine"] is entry
    assert registry.register(entry) is entry
    with pytest.raises(InputError, match="there is a kind of model of this name already; given: mine"):
        registry.register(ModelEntry("mine", "Y", "another", "mine:y", "somewhere:load"))
    with pytest.raises(InputError, match="there is a benchmark of this name already; given: bivlc"):
        catalog.register(Card(name="bivlc", title="another", form="quad"))
    with pytest.raises(InputError, match="there is a form of question of this name already; given: quad"):
        catalog.register(FormEntry("quad", "", "", ""))
    refuses("nothing that can be registered; given: int", catalog.register, 3, error=InputError)
    assert "mine" not in BENCHMARKS


def test_resolve():
    assert resolve("counterfoil.registry:Registry") is Registry
    refuses("no such module or attribute", resolve, "counterfoil.registry:none", error=InputError)
