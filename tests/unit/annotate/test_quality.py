"""Careless people of a campaign are pointed out with reasons, careful ones are not."""

import json
from dataclasses import replace

import numpy as np
import pyarrow as pa

from annotate.small_campaigns import make, pairs
from counterfoil.annotate.forms.base import FormField, WorkItem, WorkPage
from counterfoil.annotate.forms.builtin import YesNo
from counterfoil.annotate.item_order import shown_order
from counterfoil.annotate.quality import people_quality

N_PEOPLE, N_ITEMS, GOLDEN = 24, 60, 24


def answers(*, hasty=None, same=None, seed=0):
    """People judge pairs, some of them golden; `hasty` guesses fast, `same` always says yes."""
    rng = np.random.default_rng(seed)
    truth = rng.random(N_ITEMS) < 0.5
    rows = []
    for person in range(N_PEOPLE):
        for item in rng.permutation(N_ITEMS):
            yes = truth[item] if rng.random() < 0.92 else not truth[item]
            seconds = float(rng.lognormal(1.5, 0.4))
            if person == hasty:
                yes, seconds = rng.random() < 0.5, float(rng.uniform(0.2, 0.5))
            if person == same:
                yes = True
            golden = bool(yes == truth[item]) if item < GOLDEN else None
            rows.append((f"{item}", f"p{person}", "yes" if yes else "no", seconds, golden, float(len(rows))))
    names = ("item", "person", "answer", "seconds", "golden", "submitted")
    columns = dict(zip(names, zip(*rows, strict=True), strict=True))
    return pa.table({**columns, "question": ["match"] * len(rows)})


def signs_of(*given):
    """The signs of each person."""
    return {item.person: {reason.sign for reason in item.reasons} for item in people_quality(*given)}


def test_careful_people_are_not_flagged_and_no_answers_are_no_people():
    flagged = [sum(bool(item.reasons) for item in people_quality(answers(seed=seed))) for seed in range(5)]
    assert sum(flagged) <= 1
    assert {item.suggestion for item in people_quality(answers())} == {"approve"}
    assert people_quality(answers().slice(0, 0)) == ()


def test_who_guesses_fast_or_says_the_same_throughout_is_flagged_with_the_evidence():
    result = {item.person: item for item in people_quality(answers(hasty=3))}
    assert [name for name, item in result.items() if item.reasons] == ["p3"]
    hasty = result["p3"]
    signs = {reason.sign: reason for reason in hasty.reasons}
    assert {"fast", "golden", "disagree"} <= set(signs)
    assert hasty.suggestion == "reject"
    assert signs["fast"].sentence.startswith(("Takes 0.4 s per item", "Takes 0.3 s per item"))
    assert f"of {GOLDEN} items of known answer right" in signs["golden"].sentence
    assert signs["fast"].value < 0.5 < signs["fast"].pool
    assert all(reason.p <= 0.05 for reason in hasty.reasons)
    json.dumps(hasty.to_json(), allow_nan=False)
    result = {item.person: item for item in people_quality(answers(same=5))}
    assert "for 100 % of items" in next(r.sentence for r in result["p5"].reasons if r.sign == "straight")


def test_whoever_chooses_what_is_shown_first_is_flagged_though_options_are_shuffled(tmp_path):
    cells = {"caption": "A cat.", "images": ["a.png"] * 4}
    items = [WorkItem(f"{i}", cells) for i in range(N_ITEMS)]
    best_of_four = make(tmp_path / "campaign", items, form="best-of-k", seed=7)
    rng = np.random.default_rng(2)
    best = rng.integers(0, 4, N_ITEMS)
    field = best_of_four.form.page(best_of_four.items[0]).fields[0]
    rows = []
    for person in range(N_PEOPLE):
        for item in range(N_ITEMS):
            # Several images fit, so that people differ and only the place gives the careless one away.
            chosen = int(best[item]) if rng.random() < 0.5 else int(rng.integers(0, 4))
            if person == 4:
                chosen = shown_order(7, "p4", f"{item}", field)[0]
            rows.append({"item": f"{item}", "person": f"p{person}", "answer": str(chosen)})
    table = pa.Table.from_pylist(rows)
    table = table.append_column("question", pa.array(["best"] * len(rows)))
    table = table.append_column("golden", pa.nulls(len(rows), pa.bool_()))
    by_place = signs_of(table, best_of_four)
    assert "straight" in by_place["p4"]
    assert not any(signs for name, signs in by_place.items() if name != "p4")
    assert "straight" not in signs_of(table)["p4"]


class Telling(YesNo):
    """A form of another package whose main question asks for a text."""

    def page(self, item):
        return WorkPage((), (FormField("match", "What is it?", "text"),))


def test_answers_that_are_no_options_are_looked_at_for_speed_and_golden_items(tmp_path):
    table = answers(hasty=3)
    texts = pa.array([f"text {i}" for i in range(len(table))])
    table = table.set_column(table.column_names.index("answer"), "answer", texts)
    result = signs_of(table, replace(make(tmp_path / "campaign", pairs(1)), form=Telling()))
    assert result["p3"] == {"fast", "golden"}
    assert not any(signs for name, signs in result.items() if name != "p3")
