"""Released tables of scores and outcomes carry their own questions."""

import numpy as np

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.benchmarks.readers.specs import from_table
from counterfoil.benchmarks.tables import DataTable, read_table


def test_tables_that_carry_no_questions():
    scores = DataTable({"id": ["0"], "score": [0.5]}, "a.csv")
    for name in ("bivlc", "sugarcrepe", "winoground", "pairs"):
        assert from_table(card(name), scores) is None
    assert from_table(card("winoground"), DataTable({"label": ["cat", "dog"]}, "a.csv")) is None


def test_bivlc(shared_data):
    names = ("ViT-B-32", "CLIP_COCO", "CLIP_TROHN-Text")
    tables = [read_table(shared_data / "bivlc" / f"{name}.csv") for name in names]
    first, *others = (from_table(card("bivlc"), table) for table in tables)
    assert len(first) == 2933
    # The tables of all models ask the same questions in the same order.
    assert {each.digest for each in others} == {first.digest}
    assert first.images[0].id == "0_i0"
    assert from_table(card("sugarcrepe"), tables[0]) is None


def test_sugarcrepe_ids_are_the_readers(shared_data):
    """The table has the item that the repository dropped; the other 7,511 are the same under the same ids."""
    table = read_table(shared_data / "bivlc" / "SUGARCREPE_ViT-B-32.csv")
    released = from_table(card("sugarcrepe"), table)
    assert len(released) == 7512
    files = specs.read(card("sugarcrepe"), shared_data / "sugarcrepe", None)
    shared = np.asarray([name != "swap_obj/108" for name in released.questions.ids])
    assert int(shared.sum()) == 7511
    assert released.select(shared).digest == files.digest
    # A table without the item gets the same ids: the number is skipped.
    cut = {
        name: [cell for cell, keep in zip(cells, shared, strict=True) if keep]
        for name, cells in table.columns.items()
    }
    again = from_table(card("sugarcrepe"), DataTable(cut, "cut.csv"))
    assert again.questions.ids == files.questions.ids


def test_winoground_labels(shared_data):
    table = read_table(shared_data / "winoground" / "scores" / "clip.jsonl")
    labelled = from_table(card("winoground"), table)
    tags = specs.read(card("winoground"), shared_data / "winoground", None)
    assert labelled.questions.ids == tags.questions.ids
    assert [image.id for image in labelled.images] == [image.id for image in tags.images]
