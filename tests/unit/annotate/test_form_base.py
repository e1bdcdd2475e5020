"""Answers held against the page that they answer."""

from typing import Any

import pytest

from counterfoil.annotate.forms.base import (
    AnswerOption,
    FormField,
    Shown,
    WorkItem,
    WorkPage,
    check_answer,
    is_right,
)
from counterfoil.annotate.forms.choices import BestOfK
from counterfoil.errors import InputError

PAGE = WorkPage(
    (Shown("text", "a red cat", "Caption"),),
    (
        FormField(
            "match", "Match?", options=(AnswerOption("yes"), AnswerOption("partly"), AnswerOption("no"))
        ),
        FormField(
            "why",
            "Why?",
            "many",
            (AnswerOption("missing"), AnswerOption("wrong")),
            required=False,
            when={"match": ("partly", "no")},
        ),
        FormField("how", "How?", "text", when={"why": ("wrong",)}, longest=20),
        FormField("where", "Where?", "spans", (AnswerOption("error"),), required=False, text="Caption"),
    ),
)


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
            {"match": 0, "where": [{"start": 6, "end": 9, "label": 0}, {"start": 2, "end": 5, "label": 0}]},
            {
                "match": "yes",
                "where": [{"start": 2, "end": 5, "label": "error"}, {"start": 6, "end": 9, "label": "error"}],
            },
        ),
    ],
)
def test_sound_answers_are_in_terms_of_values(raw: dict[str, Any], answer: dict[str, Any]) -> None:
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
        ({"match": 0, "where": [{"start": 0, "end": 10, "label": 0}]}, "no such span"),
        ({"match": 0, "where": [{"start": 3, "end": 3, "label": 0}]}, "no such span"),
        ({"match": 0, "where": [0]}, "a span has"),
        (
            {"match": 0, "where": [{"start": 0, "end": 3, "label": 0}, {"start": 2, "end": 5, "label": 0}]},
            "overlap",
        ),
        ({"match": 0, "where": [{"start": 0, "end": 3, "label": 1}]}, "no such option"),
    ],
)
def test_what_is_no_answer_is_refused_in_one_line(raw: Any, message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        check_answer(PAGE, raw)
    assert "\n" not in str(error.value)


def test_golden_answers_are_right_in_every_field_named() -> None:
    item = WorkItem("1", {}, "golden", {"match": ["yes", "partly"], "why": ["wrong"]})
    assert is_right(item, {"match": "partly", "why": ["wrong"]}) is True
    assert is_right(item, {"match": "partly", "why": ["wrong", "missing"]}) is False
    assert is_right(item, {"match": "no", "why": ["wrong"]}) is False
    assert is_right(item, {}) is False


def test_the_last_options_stay_last() -> None:
    (best,) = BestOfK().page(WorkItem("1", {"caption": "A cat.", "images": ["a", "b", "c"]})).fields
    assert best.ordered([2, 0, 1, 3]).values == ("2", "0", "1", "none")
    assert best.last == 1
    (forced,) = BestOfK(none=False).page(WorkItem("1", {"caption": "A cat.", "images": ["a", "b"]})).fields
    assert forced.values == ("0", "1")


def test_best_of_k_names_the_reading_in_which_any_image_is_as_good_as_another() -> None:
    item = WorkItem("1", {"caption": "A cat.", "images": ["a.png", "b.png"]})
    (best,) = BestOfK().page(item).fields
    assert best.coarser == {"any or none": {"0": "any", "1": "any", "none": "none"}}
    assert BestOfK(none=False).page(item).fields[0].coarser == {}
