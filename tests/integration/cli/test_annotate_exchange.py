"""Judgements of other tools, and votes, from the command line."""

import json

from annotate.mturk_batches import hit, written
from counterfoil.annotate.judgement_table import read_judgement_table

LAYOUT = (
    "--item",
    "Input.image{n}",
    "--item",
    "Input.caption{n}",
    "--question-column",
    "match=Answer.match{n}",
)


def test_a_batch_of_mechanical_turk(counterfoil, tmp_path):
    rows = [hit(1, "A1"), hit(1, "A2", AssignmentStatus="Rejected"), hit(2, "A1"), hit(2, "A3")]
    command = f"annotate import {written(tmp_path / 'results.csv', rows)} --format mturk"
    facts = tmp_path / "facts.json"
    more = ("--question-column", "why=Answer.why{n}", "--many", "why", "--golden-column", "Input.golden{n}")
    counterfoil.succeeds(command, *LAYOUT, *more, f"--out {tmp_path}/judgements.csv --json {facts}")
    counts = {"judgements": 75, "items": 40, "people": 2, "rejected assignments": 1}
    assert json.loads(facts.read_text()) == counts
    table = read_judgement_table(tmp_path / "judgements.csv")
    # Ids of workers lead to profiles, and are not kept.
    assert set(table["person"].to_pylist()) == {"p1", "p2"}
    assert table["golden"].to_pylist().count(False) == 6
    counterfoil.succeeds(command, *LAYOUT, f"--keep-ids --out {tmp_path}/kept.parquet")
    assert set(read_judgement_table(tmp_path / "kept.parquet")["person"].to_pylist()) == {"A1", "A3"}


def test_an_export_of_label_studio(counterfoil, tmp_path):
    yes = {"from_name": "match", "type": "choices", "value": {"choices": ["yes"]}}
    kind = {"from_name": "kinds", "type": "choices", "value": {"choices": ["colour"]}}
    tasks = [{"data": {"item": "0"}, "annotations": [{"completed_by": 17, "result": [yes, kind]}]}]
    (tmp_path / "export.json").write_text(json.dumps(tasks))
    command = f"annotate import {tmp_path}/export.json --format label-studio --many kinds"
    counterfoil.succeeds(f"{command} --out {tmp_path}/back.parquet")
    table = read_judgement_table(tmp_path / "back.parquet")
    assert set(table["person"].to_pylist()) == {"p1"}
    assert table["answer"].to_pylist() == ["yes", '["colour"]']


def test_votes_for_oneself_are_counted(counterfoil, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("winner,loser\n" + "a,b\n" * 8 + "b,a\n" * 3 + "a,a\n" * 2)
    said = counterfoil.succeeds("annotate preferences", votes, "--draws", 100, "--json", "-")
    facts = json.loads(said.out)
    assert (facts["votes"], facts["votes_for_oneself"]) == (11, 2)
    assert "warning: left out, since they prefer something to itself: 2 votes" in said.err
