"""`counterfoil compare`, from run folders to files; what results look like in a terminal."""

import io
import re
import subprocess
import sys
from dataclasses import replace
from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from contracts.forms import gallery_of, ratings_of
from counterfoil.benchmarks import Caption, Image
from counterfoil.benchmarks.answers import DirectionRanks, Rankings, Scores
from counterfoil.benchmarks.folder import save
from counterfoil.cli.listings import print_words
from counterfoil.cli.tables import comparison_table, differences_table, groups_table, measures_table
from counterfoil.evaluation.compare import compare
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import save_run
from counterfoil.metrics.measures import split_direction
from counterfoil.metrics.ranks import Qrels
from counterfoil.report.results import ties_line
from counterfoil.world import benchmarks
from counterfoil.world.sample import quads


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three models on a drawn world: noise, noise, and one that knows the truth two times in three."""
    folder = tmp_path_factory.mktemp("runs")
    world = quads(60, seed=1, size=32)
    for seed, (name, strength) in enumerate({"noise": 0.0, "more-noise": 0.0, "good": 1.5}.items()):
        values = np.random.default_rng(seed).normal(size=(60, 2, 2)) + strength * np.eye(2)
        result = evaluate(world, Scores(values), model=name, draws=100)
        save_run(folder / name / "world", world, Scores(values), result, {})
    return folder


@pytest.mark.usefixtures("undrawn")
def test_signatures_are_a_line_each_in_the_terminal_and_titles_on_the_page(
    counterfoil, runs, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "60")
    few = ("--draws", 100, "--pictures", "never")
    said = counterfoil.succeeds("compare", runs, *few, "--signatures", "--html", tmp_path / "c.html")
    result = [line for line in said.out.splitlines() if line.startswith("group|ties:strict|ci:")]
    assert len(result) == 1
    assert "|v" in result[0]
    assert f'title="{result[0]}"' in (tmp_path / "c.html").read_text()
    assert "ties:strict" not in counterfoil("compare", runs, *few).out


def test_runs_without_a_common_benchmark_are_refused(counterfoil, runs, tmp_path):
    """Nothing can be compared then; with one benchmark in common the others are named."""
    world = quads(6, seed=2, size=32)
    world = replace(world, card=world.card.model_copy(update={"name": "elsewhere"}))
    values = Scores(np.random.default_rng(0).normal(size=(6, 2, 2)))
    other = tmp_path / "other" / "elsewhere"
    save_run(other, world, values, evaluate(world, values, model="other", draws=100), {})
    said = counterfoil("compare", runs / "good", other)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "given: 'good' has world-quads; 'other' has elsewhere; evaluate both on the same" in said.err
    said = counterfoil.succeeds("compare", runs, other, "--draws", 100)
    assert "elsewhere: only 'other' was run on it, so nothing is compared there" in said.err
    assert counterfoil("compare", other).code == 0


@pytest.mark.usefixtures("undrawn")
def test_data_that_are_named_are_where_pictures_come_from(counterfoil, runs, tmp_path):
    """Runs that Python saved say nothing of where their images are."""
    save(quads(60, seed=1, size=32), tmp_path / "right")
    save(quads(60, seed=2, size=32), tmp_path / "wrong")
    page = tmp_path / "page.html"
    pictures = ("--pictures", "always", "--html", page, "--overwrite")
    compare = ("compare", runs, "--draws", 100, *pictures, "--data")
    counterfoil.succeeds(*compare, tmp_path / "right")
    assert "data:image" in page.read_text()
    counterfoil.refused(*compare, tmp_path / "wrong", says="wrong: not the questions, captions and images")


def test_files_are_written_whoever_reads_the_output(runs, tmp_path):
    """As in `counterfoil compare ... --markdown t.md | head -1`: the reader leaves before the end."""
    files = [tmp_path / name for name in ("t.md", "t.json")]
    command = [sys.executable, "-m", "counterfoil", "compare", runs, "--draws", 100]
    command += ["--markdown", files[0], "--json", files[1]]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert all(file.is_file() for file in files)
    assert b"Traceback" not in errors


@pytest.mark.usefixtures("undrawn")
def test_what_is_drawn_on_the_spot_has_pictures(counterfoil, tmp_path, monkeypatch):
    # As many as the catalog says take long to make up.
    monkeypatch.setitem(benchmarks._DRAWN, "world-quads", lambda _: quads(8, size=32, lazy=True))
    for model in ("blind:length", "blind:constant"):
        name = model.rpartition(":")[2]
        said = counterfoil.succeeds(f"evaluate {model} world-quads --out {tmp_path}/runs/{name} --draws 100")
    page = tmp_path / "c.html"
    said = counterfoil.succeeds("compare", tmp_path / "runs", "--html", page, "--draws", 100)
    assert "no pictures" not in said.err
    assert page.read_text().count("data:image") > 8


@pytest.fixture
def gallery():
    """A right caption of four images is outside and one partial; one of eight captions has no image."""
    right = [[0, 1], [2, 3], [4, -1], [6]]
    back = [[0], [0], [1], [1], [2], [2], [3], []]
    worth = [[1.0, 0.5], [1.0, 1.0], [1.0, 1.0], [1.0]]
    captions = [Caption(f"c{i}", "words") for i in range(8)]
    kinds = ("near", "far", "far", "far") + ("near",) * 7 + ("none",)
    card = {"title": "Toy gallery", "measures": ("map_at_r", "recall_at_1"), "groupings": ("kind",)}
    positives = (Qrels.of(right, worth), Qrels.of(back))
    images = [Image(f"i{i}") for i in range(4)]
    return gallery_of(images, captions, positives, labels={"kind": kinds}, **card)


def rankings(depth):
    """All right answers at the top, the first query's tied with two wrong ones; known to `depth` items."""
    none = np.zeros((8, 0))
    above, level = np.array([0, 0, 0, 1, 0, -1, 0]), np.array([4, 4, 1, 1, 1, 0, 1])
    first = none[:4].astype(np.int32), none[:4].astype(np.float32)
    i2t = DirectionRanks(above, level, np.full(4, depth), *first)
    t2i = replace(i2t, above=np.zeros(7, int), level=np.ones(7, int), depth=np.full(8, min(depth, 4)))
    return Rankings(i2t, replace(t2i, top=none.astype(np.int32), top_scores=none.astype(np.float32)))


def shown(part, width):
    console = Console(width=width, file=StringIO(), highlight=False)
    console.print(part)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 84, 111, 140])
def test_a_row_per_measure_in_which_no_name_and_no_number_is_cut(gallery, width):
    """A wide chance costs a digit of the intervals, and at sixty columns these stand below their values."""
    result = evaluate(gallery, rankings(8), model="s", draws=100)
    lines = shown(measures_table(result, gallery, width=width), width)
    assert max(map(len, lines)) <= width
    end = next(i for i, line in enumerate(lines) if "are queries" in line)
    if width == 60:
        assert lines[1].split()[1:] == ["I2T", "T2I", "mean", "chance"]
    else:
        assert lines[end:] == [
            "4 of 4 images and 8 of 8 captions are queries",
            "right answers outside the gallery, never found: 1 of 7 captions",
            "without a right answer, left out: 1 caption",
        ]
    lines = lines[:end]
    assert not any("…" in line for line in lines)
    # In the order of the card.
    names = list(dict.fromkeys(split_direction(name)[1] for name in result.measures))
    rows = [line for line in lines[2:] if not line.startswith(" ")]
    assert [line.split()[0] for line in rows] == names
    for base, line, ends in zip(names, rows, lines[3::2] if width == 60 else rows, strict=True):
        estimates = [result.measures[f"{side}_{base}"] for side in ("i2t", "t2i", "mean")]
        assert {f"{100 * estimate.value:.2f}" for estimate in estimates} <= set(line.split())
        assert line.endswith(f" {100 * estimates[2].chance:.2f}")
        for estimate in estimates:
            low, high = 100 * estimate.low, 100 * estimate.high
            spans = [re.sub(r"100\.0+", "100", f"{low:.{d}f}–{high:.{d}f}") for d in (1, 2)]
            assert any(span in ends for span in (*spans, f"[{low:.2f}, {high:.2f}]"))


def compared(folder, gallery, *names):
    """A comparison of a model whose rankings are whole, and of another that ends after four items."""
    runs = []
    for name, depth in zip(names, (8, 4), strict=True):
        result = evaluate(gallery, rankings(depth), model=name, draws=100)
        runs.append(save_run(folder / name, gallery, rankings(depth), result, {}))
    return compare(runs)[0]


@pytest.mark.parametrize("width", [60, 80, 200])
def test_a_comparison_has_every_interval_at_any_width(gallery, tmp_path, width):
    comparison = compared(tmp_path, gallery, "a long name of a model, number one", "two")
    for part in (comparison_table(comparison, width=width), differences_table(comparison, width=width)):
        assert max(map(len, shown(part, width))) <= width
    above = " ".join(" ".join(shown(comparison_table(comparison, width=width), width)).split())
    for run in comparison.runs:
        for side in ("i2t", "t2i", "mean"):
            e = run.result.measures[f"{side}_map_at_r"]
            assert f"{100 * e.value:.2f}" in above
            assert f"[{100 * e.low:.2f}, {100 * e.high:.2f}]" in above
    below = "\n".join(shown(differences_table(comparison, width=width), width))
    assert below.count("[") == len(comparison.differences)
    assert ("\n− two" in below) == (width < 200)


def test_the_line_of_ties(gallery):
    result = evaluate(gallery, rankings(8), model="s", draws=100)
    # One of twelve queries. Of its tie of two right and two wrong, strict has the right ones at places 3
    # and 4, which are below R = 2: 0 in place of 1. The third query finds one of two: 1/2. So the images get
    # (0 + 1 + 1/2 + 1) / 4 and (1 + 1 + 1/2 + 1) / 4, the captions 1.
    assert ties_line(result) == (
        "ties in 1 query (8.33 %) count as wrong; mean_map_at_r would be 93.75 if they counted as right"
    )


def test_what_was_cut_and_not_measured(gallery):
    result = evaluate(gallery, rankings(4), model="s", draws=100)
    lines = shown(measures_table(result, gallery, width=140), 140)
    assert "rankings are cut, the shortest after: image → text 4" in lines


def test_groups_without_a_value_have_no_row(gallery):
    lines = shown(groups_table(evaluate(gallery, rankings(8), model="s", draws=100), gallery), 80)
    # The only query of "none" has no right answer; "far" has images alone, so no mean.
    rows = [line.split() for line in lines[2:] if not line.startswith(" ")]
    assert [row[0] for row in rows] == ["near", "far"]
    assert rows[1] == ["far", "3", "83.33"]


def test_runs_without_a_main_measure_show_what_they_have(gallery, tmp_path):
    result = evaluate(gallery, rankings(8), model="one", draws=100, measures=["recall_at_3"])
    [comparison] = compare([save_run(tmp_path, gallery, rankings(8), result, {})])
    for width in (80, 160):
        head = shown(comparison_table(comparison, width=width), width)[1]
        assert head.split() == ["%", "I2T", "R@3", "T2I", "R@3", "mean", "R@3"]


def test_differences_are_called_as_in_the_table_above(gallery, tmp_path):
    comparison = compared(tmp_path, gallery, "one", "two")
    above = shown(comparison_table(comparison, width=80), 80)
    below = shown(differences_table(comparison), 80)
    # Four images and eight captions ask.
    assert above[0] == "Toy gallery, 12 queries"
    assert above[1].split() == ["%", "I2T", "mAP@R", "T2I", "mAP@R", "mean", "mAP@R"]
    assert [" ".join(line.split()[3:5]) for line in below[2:]] == ["I2T mAP@R", "T2I mAP@R", "mean mAP@R"]


@pytest.fixture
def rated():
    """Twelve captions of six images, each rated once from 1 to 4."""
    return ratings_of(
        np.array([1, 4, 2, 3, 1, 2, 4, 4, 3, 1, 2, 3], dtype=np.float64)[:, None],
        np.arange(12) // 2,
        groupings={"kind": ("flat",) * 2 + ("near", "far") * 5},
        card={"name": "own", "title": "Own ratings", "groupings": ("kind",)},
    )


@pytest.mark.parametrize("width", [60, 160])
def test_correlations_are_times_a_hundred_with_two_decimals(rated, width):
    result = evaluate(rated, Scores(-rated.judged.ratings[:, 0]), model="against", draws=100)
    lines = shown(measures_table(result, rated, width=width), width)
    assert lines[1].split()[:3] == ["measure", "x", "100"]
    value = result.measures["kendall_tau_c"]
    row = next(line for line in lines if line.startswith("kendall_tau_c"))
    ends = f"[{100 * value.low:.2f}, {100 * value.high:.2f}]".replace("-", "−").split()
    assert row.split()[1:] == [f"−{-100 * value.value:.2f}", *ends, "0.00"]
    assert "%" not in "".join(lines).replace("95 % interval", "")
    grouped = shown(groups_table(result, rated, width=width), width)
    rows = [line for line in grouped[2:] if not line.startswith(" ")]
    names = [row.split()[0] for row in rows if not row.startswith("group")]
    assert names == ["flat", "near", "far"] * (1 if width == 160 else 2)
    # Three groups, four correlations.
    assert sum(line.count("[") for line in grouped) == 3 * 4
    assert "pairs of captions score the same" in ties_line(result)


def test_a_correlation_without_a_value_says_why(rated):
    result = evaluate(rated, Scores(np.ones(12)), model="constant", draws=100)
    lines = shown(measures_table(result, rated, width=60), 60)
    assert lines[1].split()[:3] == ["measure", "x", "100"]
    assert sum(line.split()[1:] == ["–"] for line in lines) == 4
    assert "kendall_tau_b: all scores are equal" in lines


HEADER = ("name", "form", "what it says")
ROWS = [("recall_at_1", "gallery", "an extraordinarily long explanation"), ("i2t", "quad", "short")]


def printed(width):
    console = Console(width=width, file=io.StringIO())
    print_words(console, HEADER, ROWS)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [24, 34, 40, 60, 200])
def test_no_word_is_broken(width):
    lines = printed(width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for row in ROWS:
        for cell in row:
            assert set(cell.split()) <= {word.strip(";:") for word in words}


def test_entries_are_paragraphs_only_where_columns_would_break_words():
    # "recall_at_1", "gallery" and "extraordinarily" with two blanks between: 11 + 2 + 7 + 2 + 15.
    assert printed(37)[0].split() == ["name", "form", "what", "it", "says"]
    assert printed(36)[0] == "recall_at_1"
