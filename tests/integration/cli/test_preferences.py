"""Preferences from the command line."""

import json

from printed_votes import PRINTED


def test_preferences_of_eccv_caption(counterfoil, tmp_path):
    """Table D.1: the printed votes give the printed order."""
    votes, facts, plot = (tmp_path / name for name in ("votes.csv", "strengths.json", "strengths.svg"))
    rows = [f"{name},{','.join(map(str, row))}" for name, row in zip("ABCDE", PRINTED, strict=True)]
    votes.write_text("\n".join(["ranking,A,B,C,D,E", *rows]))
    ended = counterfoil.succeeds(
        "annotate preferences", votes, "--json", facts, "--plot", plot, "--draws", 500
    )
    assert "order: C > D > A > B > E" in ended.err
    assert round(json.loads(facts.read_text())["strengths"]["C"]["value"], 2) == 70.85
    assert "<svg" in plot.read_text()


def test_votes_for_oneself_are_counted(counterfoil, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("winner,loser\n" + "a,b\n" * 8 + "b,a\n" * 3 + "a,a\n" * 2)
    ended = counterfoil.succeeds("annotate preferences", votes, "--draws", 100, "--json", "-")
    facts = json.loads(ended.out)
    assert (facts["votes"], facts["votes_for_oneself"]) == (11, 2)
    assert "warning: left out, since they prefer something to itself: 2 votes" in ended.err
    words = "votes.csv: votes for something over itself; given: 2 of 13; correct them"
    counterfoil.refused(f"annotate preferences {votes} --self-votes error", says=words)
