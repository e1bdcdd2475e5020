"""Benchmarks of one's own, which a TOML file describes: the example of docs/inputs.md, and refusals."""

import re
from pathlib import Path

import PIL.Image
import pytest

from counterfoil import catalog
from counterfoil.errors import CounterfoilError
from counterfoil.jobs.evaluation_inputs import whole_benchmark
from refusals import refuses

PAGE = (Path(__file__).parents[4] / "docs" / "inputs.md").read_text()
EXAMPLE = re.search(r"```toml\n(# signs.toml.*?)```", PAGE, re.DOTALL)[1]
ROWS = "photo,sign,other,place\n0,red,blue,a park\n1,dark blue,red,a street\n"
LAYOUT = "[signs.layout]\n"


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "images").mkdir()
    for at in range(2):
        PIL.Image.new("RGB", (8, 8), (at, 0, 0)).save(tmp_path / "images" / f"{at}.png")
    (tmp_path / "signs.csv").write_text(ROWS)
    path = tmp_path / "signs.toml"
    path.write_text(EXAMPLE)
    return path


def test_the_example_of_the_documentation_is_read(spec):
    benchmark = catalog.benchmark(str(spec))
    assert (benchmark.name, benchmark.card.title, benchmark.questions.form) == ("signs", "signs", "choice")
    first = benchmark[0]
    assert (first["caption"], first["negative_caption"]) == ("a red sign in a park", "a blue sign in a park")
    assert first["image"].decode().size == (8, 8)
    assert benchmark.questions.groupings == {"colour": ("red", "blue")}
    # Pages find the pictures again, by the file or by the folder of the data.
    assert whole_benchmark("signs", benchmark.path, None).images_at_hand
    elsewhere = spec.rename(spec.parent / "images" / "signs.toml")
    assert catalog.benchmark(str(elsewhere), data=spec.parent).path == spec.parent


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (EXAMPLE, "", "not the table of one benchmark"),
        (EXAMPLE, "a = 1", "not the table of one benchmark; given: a"),
        (EXAMPLE, EXAMPLE + "[more]", "given: signs, more"),
        ("[signs", "[bivlc", "a known benchmark has this name; given: bivlc"),
        ("[signs", '["../signs"', "not a name of a benchmark; given: ../signs"),
        ('"choice"', '"chance"', "field 'form'"),
        ("groupings", "grouping", "field 'grouping'"),
        (
            "measures",
            'reader = "os:system"\nmeasures',
            "no layout describes how this is read; given: os:system",
        ),
        ("measures", 'like = "pmrp"\nmeasures', "no layout describes how this is read; given: pmrp"),
        ("measures", 'like = "winogrund"\nmeasures', "unknown benchmark; given: winogrund"),
        ("signs.csv", "sign.csv", "no file of signs"),
        ("{other}", "{others}", "no column 'others'"),
        ("{other}", "{other", "neither its form nor its files; given: ValueError: .*'{' in field name"),
        ("red|blue", "red|(blue", "neither its form nor its files; given: error: missing \\)"),
        ('"choice"', '"quad"', "the layout fits neither its form nor its files"),
        (LAYOUT, LAYOUT + "wrong = 1\n", "layout, field 'wrong'"),
        ("of =", "from =", "layout: no field 'groups.colour.label.of'"),
        (LAYOUT, LAYOUT + 'steps = [{ call = "os:system" }]\n', "no such module or attribute"),
        (LAYOUT, LAYOUT + 'steps = [{ call = "second_tags", all = 1 }]\n', "neither its form nor its files"),
    ],
)
def test_what_does_not_fit_is_one_line(spec, old, new, message):
    assert old in EXAMPLE
    spec.write_text(EXAMPLE.replace(old, new))
    refuses(message, catalog.benchmark, str(spec), error=CounterfoilError)
