"""`counterfoil build`: recipes, steps alone, the report, and bad input."""

import json

import pyarrow.parquet as pq

_SMALL = ("--n", 14, "--set", "read.size=32", "--no-cache", "--workers", 0)


def test_a_recipe_builds_a_benchmark_with_a_report(counterfoil, tmp_path):
    out, result = tmp_path / "quads", tmp_path / "build.json"
    small = (*_SMALL, "--set imagine.size=32 --seed 3")
    counterfoil.succeeds(f"build bivlc --out {out} --json {result}", *small)
    actual = json.loads(result.read_text())
    assert [step["step"] for step in actual["steps"]][-1] == "6-assemble"
    assert (actual["recipe"], actual["seed"]) == ("bivlc", 3)
    for before, after in zip(actual["steps"], actual["steps"][1:], strict=False):
        assert before["rows_out"] == after["rows_in"]
    page = (out / "report.html").read_text()
    assert page.count("<section") >= 7
    assert "counterfoil build bivlc" in page
    assert str(tmp_path) not in page
    assert "another candidate was chosen" in page
    assert counterfoil("evaluate", "blind:length", out, "--no-cache", "--draws", 100).code == 0
    again = counterfoil(f"build bivlc --out {out} --json -", *small)
    assert json.loads(again.out) == actual


def test_a_recipe_of_ones_own_in_a_file(counterfoil, tmp_path):
    recipe = tmp_path / "mine.toml"
    recipe.write_text('title = "Mine"\n[[steps]]\ndo = "read"\nn = 7\nsize = 32\n[[steps]]\ndo = "assemble"')
    said = counterfoil.succeeds("build", recipe, "--out", tmp_path / "b", "--no-cache", "--no-html")
    assert "2-assemble" in said.out
    assert not (tmp_path / "b" / "report.html").exists()


def test_a_step_alone_on_a_table(counterfoil, tmp_path):
    table, out, gone = (tmp_path / name for name in ("rows.csv", "out.csv", "gone.csv"))
    table.write_text("image,caption,negative_caption\na.png,a cat,a dog\nb.png,a  cat ,a dog\n")
    counterfoil.succeeds("build", "format", table, "--out", tmp_path / "formed.parquet", "--no-cache")
    assert pq.read_table(tmp_path / "formed.parquet")["caption"].to_pylist()[1].lower().startswith("a cat")
    assert counterfoil("build", "dedup", table, "--out", out, "--dropped", gone, "--no-cache").code == 0
    assert len(out.read_text().splitlines()) == 2
    assert "reason" in gone.read_text().splitlines()[0]


def test_rows_that_were_all_dropped_are_kept(counterfoil, tmp_path):
    table, out, gone = (tmp_path / name for name in ("rows.csv", "out.csv", "gone.csv"))
    table.write_text("id,caption\na,A dog.\nb,A cat.\n")
    step = ("build", "negate", table, "--categories", "swap_obj", "--no-cache")
    said = counterfoil(*step, "--out", out)
    assert (said.code, out.exists()) == (2, False)
    assert "no row is left; given: 2 no two objects to swap; --dropped FILE writes the rows" in said.err
    said = counterfoil(*step, "--out", out, "--dropped", gone)
    assert (said.code, out.exists()) == (2, False)
    assert gone.name in said.err
    assert [line.partition(",")[0] for line in gone.read_text().replace('"', "").splitlines()] == [
        "id", "a/swap_obj", "b/swap_obj"
    ]  # fmt: skip
    counterfoil.refused(*step, "--out", tmp_path / "folder", says="unknown kind of table")
