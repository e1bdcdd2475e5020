"""Preferences from the command line."""

import json


def test_votes_for_oneself_are_counted(counterfoil, tmp_path):
    votes = tmp_path / "votes.csv"
    votes.write_text("winner,loser\n" + "a,b\n" * 8 + "b,a\n" * 3 + "a,a\n" * 2)
    said = counterfoil.succeeds("annotate preferences", votes, "--draws", 100, "--json", "-")
    facts = json.loads(said.out)
    assert (facts["votes"], facts["votes_for_oneself"]) == (11, 2)
    assert "warning: left out, since they prefer something to itself: 2 votes" in said.err
