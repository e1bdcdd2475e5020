"""Answers held against the page that they answer."""

import pytest

from counterfoil.annotate.forms.base import AnswerOption, FormField, Shown, WorkItem, WorkPage, check_answer
from counterfoil.annotate.forms.builtin import BestOfK
from counterfoil.annotate.golden import is_right
from counterfoil.errors import InputError
from refusals import refuses

YES, PARTLY, NO, MISSING, WRONG, ERROR = map(
    AnswerOption, ["yes", "partly", "no", "missing", "wrong", "error"]
)
WHEN_WHY = {"match": ("partly", "no")}
PAGE = WorkPage(
    (Shown("text", "a red cat", "Caption"),),
    (
        FormField("match", "Match?", options=(YES, PARTLY, NO)),
        FormField("why", "Why?", "many", (MISSING, WRONG), required=False, when=WHEN_WHY),
        FormField("how", "How?", "text", when={"why": ("wrong",)}, longest=20),
        FormField("where", "Where?", "spans", (ERROR,), required=False, text="Caption"),
    ),
)


def span(start, end, label=0):
    return {"start": start, "end": end, "label": label}


@pytest.mark.parametrize(
    ("raw", "answer"),
    [
        ({"match": 0}, {"match": "yes", "where": []}),
        ({"match": 2}, {"match": "no", "why": [], "where": []}),
        (
            {"match": 1, "why": [1, 0], "how": "  odd \n hue "},
            {"match": "partly", "why": ["missing", "wrong"], "how": "odd hue", "where": []},
        ),
        (
            {"match": 0, "where": [span(6, 9), span(2, 5)]},
            {"match": "yes", "where": [span(2, 5, "error"), span(6, 9, "error")]},
        ),
    ],
)
def test_sound_answers_are_in_terms_of_values(raw, answer):
    assert check_answer(PAGE, raw) == answer


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({}, "field 'match': no answer"),
        ({"match": -1}, "no such option"),
        ({"match": "yes"}, "no such option"),
        ({"match": 3}, "allowed: 0 to 2"),
        ({"match": 0, "extra": 1}, "unknown field; given: extra"),
        ({"match": 0, "why": [0]}, "not open"),
        ({"match": 1, "why": 0}, "a list"),
        ({"match": 1, "why": [0, 0]}, "twice"),
        ({"match": 1, "why": [0, 1, 1]}, "a list"),
        ({"match": 1, "why": [1]}, "field 'how': no answer"),
        ({"match": 1, "why": [1], "how": "x" * 21}, "21 characters"),
        ({"match": 1, "why": [1], "how": " \n "}, "no answer"),
        ({"match": 1, "why": [1], "how": 5}, "no text of this length"),
        ({"match": 0, "where": [span(0, 10)]}, "no such span"),
        ({"match": 0, "where": [span(3, 3)]}, "no such span"),
        ({"match": 0, "where": [0]}, "a span has"),
        ({"match": 0, "where": [span(0, 3), span(2, 5)]}, "overlap"),
        ({"match": 0, "where": [span(0, 3, 1)]}, "no such option"),
    ],
)
def test_what_is_no_answer_is_refused_in_one_line(raw, message):
    refuses(message, check_answer, PAGE, raw, error=InputError)


def test_golden_answers_are_right_in_every_field_named():
    item = WorkItem("1", {}, "golden", {"match": ["yes", "partly"], "why": ["wrong"]})
    assert is_right(item, {"match": "partly", "why": ["wrong"]}) is True
    assert is_right(item, {"match": "partly", "why": ["wrong", "missing"]}) is False
    assert is_right(item, {"match": "no", "why": ["wrong"]}) is False
    assert is_right(item, {}) is False


def test_best_of_k_has_none_last_and_a_reading_in_which_any_image_is_as_good_as_another():
    item = WorkItem("1", {"caption": "A cat.", "images": ["a.png", "b.png"]})
    (best,) = BestOfK().page(item).fields
    assert (best.ordered([1, 0, 2]).values, best.last) == (("1", "0", "none"), 1)
    assert best.coarser == {"any or none": {"0": "any", "1": "any", "none": "none"}}
    (forced,) = BestOfK(none=False).page(item).fields
    assert (forced.values, forced.coarser) == (("0", "1"), {})
