"""Sheets for people who write questions: what is proposed, what is waited for, what is read back."""

import csv
from dataclasses import replace

from counterfoil.build.pipeline import read_recipe, run_recipe


def _recipe(source, **settings):
    text = {f"author.{key}": value for key, value in settings.items()}
    return read_recipe("winoground", settings={"read.source": str(source), **text})


def test_a_build_waits_for_the_sheet_and_goes_on_with_the_filled_one(work, tmp_path):
    source, filled = tmp_path / "captions.csv", tmp_path / "filled.csv"
    work = replace(work, session=replace(work.session, note=lambda text: None))
    source.write_text("caption\nA black cat sits on a red chair.\n")
    build = run_recipe(_recipe(source), work)
    assert [each.step for each in build.records] == ["read", "format", "negate", "author"]
    assert "sheet.csv" in build.waits
    assert build.benchmark is None
    assert run_recipe(_recipe(source), work).records == build.records

    rows = list(csv.DictReader((work.folder / "sheet.csv").read_text().splitlines()))
    assert rows
    for row in rows:
        assert sorted(row["caption"].lower().strip(".").split()) == sorted(
            row["negative_caption"].lower().strip(".").split()
        )
    own = {**rows[0], "id": "mine", "caption": "a b", "negative_caption": "b a"}
    other = {**own, "id": "odd", "negative_caption": "b c"}
    lines = [{**own, "image": "x.png", "negative_image": "y.png"}, {**other, "image": "x.png"}, rows[0]]
    with filled.open("w", newline="") as file:
        sheet = csv.DictWriter(file, rows[0])
        sheet.writeheader()
        sheet.writerows(lines)
    build = run_recipe(_recipe(source, filled=str(filled)), work)
    assert not build.waits
    author = build.folders[3]
    assert author.rows()["id"].to_pylist() == ["mine"]
    assert dict(
        zip(author.dropped()["id"].to_pylist(), author.dropped()["reason"].to_pylist(), strict=True)
    ) == {"odd": "not the same words", rows[0]["id"]: "no image filled in"}
    assert build.records[-1].facts["form"] == "quad"


def test_drawn_rows_get_their_images_and_wait_for_no_one(work):
    settings = {"read.n": "14", "read.size": "32", "imagine.size": "32"}
    build = run_recipe(read_recipe("winoground", settings=settings), work)
    assert not build.waits
    assert build.records[-1].facts["form"] == "quad"
    assert build.records[-1].facts["questions"] == build.records[3].rows_out > 7
