"""Preferences from the command line."""

import json


def test_preferences_of_eccv_caption(counterfoil, tmp_path):
    """Table D.1: the printed votes give the printed strengths, to C, D, A, B, E in that order."""
    votes = tmp_path / "votes.csv"
    votes.write_text(
        "ranking,A,B,C,D,E\nA,0,231,66,111,316\nB,89,0,21,79,328\nC,254,299,0,273,343\n"
        "D,185,217,23,0,287\nE,28,16,1,9,24\n"
    )
    found, plot = tmp_path / "strengths.json", tmp_path / "strengths.svg"
    said = counterfoil.succeeds(
        "annotate preferences", votes, "--json", found, "--plot", plot, "--draws", 500
    )
    assert "order: C > D > A > B > E" in said.err
    facts = json.loads(found.read_text())
    strengths = {name: round(entry["value"], 2) for name, entry in facts["strengths"].items()}
    assert strengths == {"C": 70.85, "D": 13.15, "A": 10.66, "B": 4.89, "E": 0.44}
    assert "<svg" in plot.read_text()


def test_votes_for_oneself_are_counted(counterfoil, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("winner,loser\n" + "a,b\n" * 8 + "b,a\n" * 3 + "a,a\n" * 2)
    said = counterfoil.succeeds("annotate preferences", votes, "--draws", 100, "--json", "-")
    facts = json.loads(said.out)
    assert (facts["votes"], facts["votes_for_oneself"]) == (11, 2)
    assert "warning: left out, since they prefer something to itself: 2 votes" in said.err
    counterfoil.refused(
        f"annotate preferences {votes} --self-votes error",
        says="votes.csv: votes for something over itself; given: 2 of 13; correct them",
    )
