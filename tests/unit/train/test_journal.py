"""The journal: one line an entry, readable at any moment, and no step twice."""

import pytest

from counterfoil.train.journal import FIRST, Journal, read
from refusals import refuses

ENTRIES = [
    {"step": 1, "loss": 0.1 + 0.2},
    {"step": 2, "loss": 1e-30, "validation_accuracy": 1 / 3},
    {"step": 4, "loss": float("inf"), "lr": 1e-6},
]


def test_what_is_written_is_read_to_the_last_bit_and_without_a_file_in_memory(tmp_path):
    journal = Journal(tmp_path / "journal.csv")
    for count, entry in enumerate(ENTRIES, start=1):
        journal.write(entry)
        assert read(tmp_path / "journal.csv") == ENTRIES[:count] == journal.entries
    assert (tmp_path / "journal.csv").read_text().splitlines()[0] == ",".join((*FIRST, "validation_accuracy"))
    journal = Journal(None)
    journal.write(ENTRIES[0])
    journal.sync()
    assert journal.entries == ENTRIES[:1]


@pytest.mark.parametrize("since", [0, 1, 2, 3, 4])
def test_going_on_drops_what_will_be_written_again(tmp_path, since):
    path = tmp_path / "journal.csv"
    first = Journal(path)
    for entry in ENTRIES:
        first.write(entry)
    # A crash in the middle of a line.
    with path.open("a") as file:
        file.write("5,0.1")
    second = Journal(path, since=since)
    kept = [entry for entry in ENTRIES if entry["step"] <= since]
    assert second.entries == read(path) == kept
    second.write({"step": 9, "new": 1.0})
    assert read(path) == [*kept, {"step": 9, "new": 1.0}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a,b\n1,2\n", "not a journal"),
        ("step,loss\n1,x\n", "line 2: does not fit"),
        ("step,loss\n,1\n", "line 2"),
    ],
)
def test_what_is_no_journal_is_said(tmp_path, text, said):
    (tmp_path / "journal.csv").write_text(text)
    refuses(said, read, tmp_path / "journal.csv")
