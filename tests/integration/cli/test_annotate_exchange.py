"""Judgements of other tools and questions for them, from the command line."""

import json
from pathlib import Path

import pytest

pytest.importorskip("sqlalchemy")

from annotate.mturk_batches import hit, written
from annotate.small_campaigns import make, pairs
from counterfoil.annotate import participants
from counterfoil.annotate.judgement_table import read_judgement_table


def batch(path: Path) -> Path:
    rows = [hit(1, "A1"), hit(1, "A2", AssignmentStatus="Rejected"), hit(2, "A1"), hit(2, "A3")]
    return written(path, rows)


LAYOUT = ("--item", "Input.image{n}", "--item", "Input.caption{n}", "--question", "match=Answer.match{n}")


def test_a_batch_of_mechanical_turk(counterfoil, tmp_path):
    out, facts = tmp_path / "judgements.csv", tmp_path / "facts.json"
    more = ("--question", "why=Answer.why{n}", "--many", "why", "--golden", "Input.golden{n}")
    counterfoil.succeeds(
        f"annotate import {batch(tmp_path / 'results.csv')} --from mturk",
        *LAYOUT,
        *more,
        f"--out {out} --json {facts}",
    )
    found = json.loads(facts.read_text())
    assert found == {"judgements": 75, "items": 40, "people": 2, "rejected assignments": 1}
    table = read_judgement_table(out)
    # Ids of workers lead to profiles, and are not kept.
    assert set(table["person"].to_pylist()) == {"p1", "p2"}
    assert "A1" not in "".join(table["person"].to_pylist())
    assert table["golden"].to_pylist().count(False) == 6
    counterfoil.succeeds(
        f"annotate import {tmp_path}/results.csv --from mturk",
        *LAYOUT,
        f"--keep-ids --out {tmp_path}/kept.parquet",
    )
    assert set(read_judgement_table(tmp_path / "kept.parquet")["person"].to_pylist()) == {"A1", "A3"}


def test_an_export_of_label_studio_is_held_to_the_golden_items_of_a_campaign(counterfoil, tmp_path):
    campaign = make(tmp_path / "campaign", pairs(1, golden=2))
    yes = {"from_name": "match", "type": "choices", "value": {"choices": ["yes"]}}
    tasks = [
        {"data": {"item": item}, "annotations": [{"completed_by": 1, "result": [yes]}]}
        for item in ("0", "golden-0", "golden-1")
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    (tmp_path / "labelling.xml").write_text('<View><Choices name="match" toName="image"/></View>')
    counterfoil.succeeds(
        f"annotate import {tmp_path}/export.json --from label-studio --config {tmp_path}/labelling.xml "
        f"--campaign {campaign.folder} --out {tmp_path}/back.parquet"
    )
    rows = read_judgement_table(tmp_path / "back.parquet").to_pylist()
    # Golden 0 is a yes, golden 1 is none.
    assert {row["item"]: row["golden"] for row in rows} == {"0": None, "golden-0": True, "golden-1": False}
    assert {row["person"] for row in rows} == {participants.person_id(campaign, "label-studio", "1")}


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("x,ann,match,yes", "judgement 1: no such item in the campaign; given: x"),
        ("0,ann,odd,yes", "judgement 1: no such question of this item; given: odd; allowed: match"),
    ],
)
def test_judgements_of_other_campaigns(counterfoil, tmp_path, rows, words):
    campaign = make(tmp_path / "campaign", pairs(1))
    (tmp_path / "answers.csv").write_text(f"item,person,question,answer\n{rows}\n")
    counterfoil.fails(
        f"annotate import {tmp_path}/answers.csv --from table --campaign {campaign.folder} "
        f"--out {tmp_path}/out.csv",
        says=words,
    )
    assert not (tmp_path / "out.csv").exists()


def test_a_question_has_a_name_and_a_column(counterfoil, tmp_path):
    said = counterfoil(
        f"annotate import {batch(tmp_path / 'r.csv')} --from mturk --question match --out {tmp_path}/out.csv"
    )
    assert "--question needs KEY=VALUE; given: match" in said.err


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mturk-review", "on the batch's page at Mechanical Turk"),
        ("study", "counterfoil annotate simulate"),
        ("questions", "counterfoil annotate serve"),
    ],
)
def test_commands_that_were_removed_name_what_to_use_instead(counterfoil, name, words):
    removed = f"the command was removed; given: annotate {name}; "
    assert words in counterfoil.refused(f"annotate {name} x.csv --out y.csv", says=removed).err
