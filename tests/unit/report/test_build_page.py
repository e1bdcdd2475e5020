"""Pages of builds and their thumbnails: rows, reasons and facts; small pictures within the budget."""

import io
import re

import PIL.Image

from counterfoil.benchmarks.records import BytesSource, Image
from counterfoil.report.build_page import RowExample, StepSection, build_page, counts_table
from counterfoil.report.thumbnails import BROKEN, Thumbnails, data_uri, thumbnail

BEFORE = {"value": 0.7, "low": 0.6, "high": 0.8, "n": 12}
AFTER = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 8}
CURVE = [
    {"threshold": t, "kept": [1 - t, 0, 1], "precision": [p, p - 0.1, p + 0.1], "recall": [1, 1, 1]}
    for t, p in ((0.0, 0.5), (0.5, 0.75))
]
FACTS = {
    "rows": 12,
    "share": 0.25,
    "nested": {"a": 1, "b": 2},
    "scores": {"blind:length": {"before": BEFORE, "after": AFTER}},
    "calibration": {"curve": CURVE},
    "cost": {"x": [0, 1, 2], "y": [0, 3, 4], "x_label": "judged", "y_label": "found", "title": "Cost"},
}
STEP = StepSection(
    *("2-refine", "drop rows <b>", 12, 8, {"too long": 3, "too short": 1}, {"bins": "50"}, FACTS),
    kept_rows=(RowExample("a", {"caption": "a cat & a dog"}, {}),),
    dropped_rows=(RowExample("b", {"caption": "a bird"}, {}, "too long"),),
)


def test_the_page_says_what_a_step_did():
    given = {"about": "about it", "command": "build mine"}
    page = build_page("Mine", [STEP], **given)
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    assert "12 rows in, 8 out" in text
    assert "too long 3 75.00" in text
    assert "blind:length 70.00 60.0 to 80.0 50.00 40.0 to 60.0" in text
    assert "rows : 12" in text
    assert "nested : a 1, b 2" in text
    assert "a cat &amp; a dog" in page
    assert "drop rows <b>" not in page
    assert (page.count("<svg"), page) == (3, build_page("Mine", [STEP], **given))


def test_counts_stand_with_their_shares_the_most_frequent_first():
    table = counts_table("c", {"b": 1, "a": 1, "": 2}, corner="x")
    rows = [(row.name, row.cells[0].value, row.cells[1].value) for row in table.rows]
    assert rows == [("(none)", "2", 0.5), ("a", "1", 0.25), ("b", "1", 0.25)]


def drawn(size, colour="red", mode="RGB"):
    out = io.BytesIO()
    PIL.Image.new(mode, size, colour).save(out, "PNG")
    return out.getvalue()


def images(*data):
    return [Image(f"i{k}", BytesSource(d, f"file {k}")) for k, d in enumerate(data)]


def test_a_thumbnail_keeps_the_shape_and_is_never_larger():
    for size, expected in (((400, 100), (200, 50)), ((50, 30), (50, 30)), ((3, 900), (1, 200))):
        with PIL.Image.open(io.BytesIO(thumbnail(PIL.Image.new("RGB", size, "blue")))) as small:
            assert (small.size, small.mode) == (expected, "RGB")
    assert re.match(r"data:image/(webp|jpeg);base64,", data_uri(thumbnail(PIL.Image.new("L", (9, 9)))))


def test_equal_pictures_are_held_once_even_across_benchmarks():
    thumbnails = Thumbnails()
    first = thumbnails.add(images(drawn((60, 60)), drawn((60, 60), "green")), [[0, 1]])
    second = thumbnails.add(images(drawn((60, 60), "green"), drawn((60, 60))), [[0], [1]])
    assert len(thumbnails.uris) == 2
    assert (first, second) == ({0: 0, 1: 1}, {0: 1, 1: 0})


def test_a_question_gets_all_of_its_pictures_or_none():
    data = images(*(drawn((60, 60), f"#{k}0{k}0ff") for k in range(1, 9)))
    full = Thumbnails()
    full.add(data, [[0, 1], [2, 3], [4, 5]])
    room = sum(map(len, full.uris[:4])) + 10
    thumbnails = Thumbnails(room)
    assert set(thumbnails.add(data, [[0, 1], [2, 3], [4, 5], [6, 7]])) == {0, 1, 2, 3}
    assert thumbnails.left == 10
    assert sum(map(len, thumbnails.uris)) == room - 10


def test_what_cannot_be_decoded_gets_a_placeholder_and_a_reason_and_what_is_not_at_hand_none():
    whole = drawn((300, 300), "yellow")
    thumbnails = Thumbnails()
    numbers = thumbnails.add(images(whole, b"no picture", whole[: len(whole) // 2]), [[0, 1], [2]])
    assert thumbnails.uris[numbers[0]] != BROKEN
    assert thumbnails.uris[numbers[1]] == thumbnails.uris[numbers[2]] == BROKEN
    assert set(thumbnails.broken) == {"i1", "i2"}
    assert thumbnails.broken["i1"].startswith("file 1: not an image file")
    assert "file 2" in thumbnails.broken["i2"]
    assert Thumbnails().add([Image("gone"), *images(drawn((5, 5)))], [[0], [0, 1]]) == {1: 0}
