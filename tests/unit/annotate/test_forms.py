"""Every form of work: its page, answers held against it, golden answers, items that it cannot show."""

import json

import pytest

from counterfoil.annotate.campaign import items_table
from counterfoil.annotate.forms.base import (
    AnswerOption,
    FormField,
    Shown,
    WorkForm,
    WorkItem,
    WorkPage,
    check_answer,
)
from counterfoil.annotate.forms.builtin import BestOfK
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.golden import is_right
from counterfoil.benchmarks.judgements import gain_of
from counterfoil.errors import InputError
from refusals import refuses

PAIR = {"image": "a.png", "caption": "a red cat"}
#: Of every form: sound cells, the answer that its page gets, and what comes of it.
_SWAPPED = {"first_caption": "a dog bites a cat", "second_caption": "a cat bites a dog"}
CASES = {
    "best-of-k": ({"caption": "c", "images": ["a.png", "b.png"]}, {"best": 2}, {"best": "none"}),
    "which-image": (
        {"caption": "c", "image": "a.png", "negative_image": "b.png"},
        *({"fits": 1}, {"fits": "negative_image"}),
    ),
    "choose": ({"images": ["a.png"], "captions": ["c", "d"]}, {"best": 1}, {"best": "1"}),
    "match": (
        PAIR,
        {"match": 1, "shortcomings": [2, 0], "errors": [9, 1], "error": " the  tail "},
        {"match": "Partially YES", "shortcomings": ["absent", "wrong"]}
        | {"errors": ["appearance", "other"], "error": "the tail"},
    ),
    "yes-no": (PAIR, {"match": 0}, {"match": "yes"}),
    "preference": (
        {"caption": "c", "first": "A", "second": "B", "first_images": ["a.png"], "second_images": ["b.png"]},
        *({"better": 0}, {"better": "first"}),
    ),
    "rating": (PAIR, {"rating": 3}, {"rating": "4"}),
    "quad-authoring": (
        {"images": ["a.png", "b.png"], "topic": "pets"},
        {"first_image": 0, "second_image": 1, **_SWAPPED, "swap": 0, "predicates": 0},
        {"first_image": "0", "second_image": "1", **_SWAPPED}
        | {"swap": "object", "predicates": "1", "visual": []},
    ),
    "quad-validation": (
        {"first_image": "a.png", "second_image": "b.png"}
        | {"first_caption": "c", "second_caption": "d", "author": "someone"},
        *({"first_image": 0, "second_image": 2}, {"first_image": "first", "second_image": "equal"}),
    ),
    "error-spans": (
        PAIR,
        {"verdict": 1, "errors": [{"start": 2, "end": 5, "label": 1}]},
        {"verdict": "wrong", "errors": [{"start": 2, "end": 5, "label": "attribute"}]},
    ),
}


def form(name, **settings):
    return WORK_FORMS[name].form(settings, where="here")


def answered(name, cells, raw, **settings):
    """An answer as the server takes it: held against the page, then against the form."""
    made, item = form(name, **settings), WorkItem("1", cells)
    answer = check_answer(made.page(item), raw)
    made.check(item, answer)
    return answer


def test_every_form_has_a_case():
    assert set(CASES) == {name for name in WORK_FORMS if not name.startswith("example")}


@pytest.mark.parametrize("name", CASES)
def test_a_form_says_of_itself_what_campaigns_need(name):
    made, (cells, *_), facts = form(name), CASES[name], WORK_FORMS[name].facts
    assert isinstance(made, WorkForm)
    assert (made.name, WORK_FORMS[name].summary) == (name, made.summary)
    assert json.loads(json.dumps(facts))["label"] == made.main
    assert set(cells) <= set(made.columns)
    assert all((made.seconds > 0, made.instructions, *facts["settings"].values()))
    page = made.page(WorkItem("1", cells))
    main = next(item for item in page.fields if item.name == made.main)
    assert (main.kind, main.required, main.when) == ("one", True, {})
    # What a campaign serves are the images that pages show: all that items have.
    cells_of = [cells.get(name) or () for name, kind in made.columns.items() if kind in ("image", "images")]
    shown = {image for cell in cells_of for image in ([cell] if isinstance(cell, str) else cell)}
    assert set(page.images) == shown
    for i, field in enumerate(page.fields):
        assert 0 <= field.last < max(1, len(field.options))
        assert set(field.when) <= {before.name for before in page.fields[:i]}
        assert len(set(field.values)) == len(field.values)


@pytest.mark.parametrize("name", CASES)
def test_answers_come_out_in_terms_of_values_and_golden_ones_are_right(name):
    cells, raw, answer = CASES[name]
    assert answered(name, cells, raw) == answer
    made = form(name)
    item = WorkItem("1", cells, "golden", {made.main: [answer[made.main]]})
    for value in next(item for item in made.page(item).fields if item.name == made.main).values:
        assert is_right(item, {**answer, made.main: value}) is (value == answer[made.main])


@pytest.mark.parametrize("name", CASES)
def test_an_item_without_a_cell_that_is_needed_is_refused(name):
    """Every cell of the case is taken away in turn; the form refuses, or does without it."""
    cells = CASES[name][0]
    without = {"preference": "caption", "quad-authoring": "images topic", "quad-validation": "author"}
    for column in cells:
        item = WorkItem("7", {**cells, column: None})
        if column in without.get(name, "").split():
            assert form(name).page(item).fields
            continue
        refuses("item '7'", form(name).page, item, error=InputError)


@pytest.mark.parametrize("name", CASES)
def test_what_must_not_be_seen_is_not_on_the_page(name):
    made, cells = form(name), CASES[name][0]
    hidden = "golden", {made.main: ["hidden-golden"]}, "hidden-instance", "k", "hidden-truth"
    item = WorkItem("1", cells, *hidden)
    page = made.page(item)
    parts = [shown.content + shown.label for shown in page.shown] + [field.prompt for field in page.fields]
    options = [option for field in page.fields for option in field.options]
    parts += [word for option in options for word in (option.label, *option.texts, *option.images)]
    assert not [part for part in parts if "hidden" in part or "someone" in part]
    # The names of rankings.
    assert name != "preference" or not {"A", "B"} & set(" ".join(parts).split())
    assert items_table([item], made).num_rows == 1


def test_the_four_answers_have_the_gains_that_judgements_have():
    (match, *_) = form("match").page(WorkItem("1", PAIR)).fields
    assert [gain_of(value) for value in match.values] == [1.0, 0.5, 0.0, 0.0]
    assert match.level == "ordinal"
    assert [match.coarser["yes or no"][value] for value in match.values] == ["yes", "yes", "no", "no"]


_AUTHORED = CASES["quad-authoring"][1]


@pytest.mark.parametrize(
    ("name", "cells", "raw", "message"),
    [
        # Questions of a match open only where they are needed.
        ("match", {}, {"match": 0, "shortcomings": [0]}, "not open"),
        ("match", {}, {"match": 3, "shortcomings": [0]}, "not open"),
        ("match", {}, {"match": 1}, "field 'shortcomings': no answer"),
        ("match", {}, {"match": 2, "shortcomings": [0], "errors": [1]}, "not open"),
        ("match", {}, {"match": 2, "shortcomings": [2]}, "field 'errors': no answer"),
        ("match", {}, {"match": 2, "shortcomings": [2], "errors": [9]}, "field 'error': no answer"),
        ("match", {}, {"match": 2, "shortcomings": [2], "errors": [0], "error": "x"}, "not open"),
        ("error-spans", {}, {"verdict": 1, "errors": []}, "field 'errors': no answer"),
        # Rankings that cannot be compared, and items that are no choice.
        ("preference", {"second_images": None, "second_captions": ["c"]}, {}, "both rankings are of images"),
        ("preference", {"second_captions": ["c"]}, {}, "given: both"),
        ("preference", {"second": "A"}, {}, "A twice"),
        ("choose", {"captions": ["c"]}, {}, "one image with several captions"),
        ("choose", {"images": ["a", "b"]}, {}, "one image with several captions"),
        ("quad-authoring", {"images": None, "topic": None}, {}, "neither images nor a topic"),
        # Authors keep to the rules.
        ("quad-authoring", {}, {**_AUTHORED, "second_image": 0}, "the same one"),
        ("quad-authoring", {}, {**_AUTHORED, "second_caption": "A dog bites a cat"}, "are the same"),
        ("quad-authoring", {}, {**_AUTHORED, "second_caption": "a cat bites dogs"}, "the same words"),
        ("quad-authoring", {}, {**_AUTHORED, "second_caption": "a cat a dog bites a"}, "the same words"),
    ],
)
def test_items_and_answers_that_are_refused(name, cells, raw, message):
    refuses(message, answered, name, {**CASES[name][0], **cells}, raw, error=InputError)


def test_an_image_or_a_caption_is_chosen_and_a_topic_without_images_asks_for_captions_alone():
    page = form("choose").page(WorkItem("1", {"images": ["a", "b"], "captions": ["c"]}))
    assert (page.fields[0].options[1].images, page.shown[0].kind) == (("b",), "text")
    page = form("quad-authoring").page(WorkItem("1", {"images": [], "topic": "pets"}))
    assert not [item.name for item in page.fields if "image" in item.name]


@pytest.mark.parametrize(
    ("name", "setting", "values", "last"),
    [
        ("which-image", "neither", ("image", "negative_image", "both", "neither"), 2),
        ("preference", "same", ("first", "second", "same"), 1),
    ],
)
def test_neither_and_no_preference_are_settings(name, setting, values, last):
    (field,) = form(name, **{setting: True}).page(WorkItem("1", CASES[name][0])).fields
    assert (field.values, field.last) == (values, last)


@pytest.mark.parametrize(
    ("settings", "values", "labels"),
    [
        ({}, 4, "describes the image without errors"),
        ({"levels": 5, "labels": ["bad", "good"]}, 5, "5: good"),
        ({"levels": 3, "labels": ["bad", "fair", "good"]}, 3, "2: fair"),
        ({"levels": 7}, 7, "7"),
    ],
)
def test_scales_of_ratings(settings, values, labels):
    (rating,) = form("rating", **settings).page(WorkItem("1", PAIR)).fields
    assert rating.values == tuple(str(step) for step in range(1, values + 1))
    assert any(labels in option.label for option in rating.options)
    assert form("rating", level="interval").page(WorkItem("1", PAIR)).fields[0].level == "interval"


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("rating", {"levels": 10}, "2 to 9"),
        ("rating", {"levels": 5, "labels": ["a", "b", "c"]}, "labels of a scale"),
        ("rating", {"level": "nominal"}, "ordinal, interval"),
        ("error-spans", {"kinds": ["a", "a"]}, "kinds of error"),
        ("quad-authoring", {"swaps": []}, "what is exchanged"),
    ],
)
def test_settings_that_make_no_form(name, settings, message):
    refuses(message, form, name, error=InputError, **settings)


_OTHER_WORDS = {**_AUTHORED, "second_caption": "two cats sleep"}


@pytest.mark.parametrize(
    ("name", "settings", "raw", "answer"),
    [
        ("match", {"rationale": False}, {"match": 1}, {"match": "Partially YES"}),
        ("error-spans", {}, {"verdict": 0}, {"verdict": "right"}),
        ("quad-authoring", {"same_words": False}, _OTHER_WORDS, {"second_caption": "two cats sleep"}),
    ],
)
def test_fewer_questions_and_rules(name, settings, raw, answer):
    assert answer.items() <= answered(name, CASES[name][0], raw, **settings).items()


YES, PARTLY, NO, MISSING, WRONG, ERROR = map(
    AnswerOption, ("yes", "partly", "no", "missing", "wrong", "error")
)
PAGE = WorkPage(
    (Shown("text", "a red cat", "Caption"),),
    (
        FormField("match", "Match?", options=(YES, PARTLY, NO)),
        FormField("why", "Why?", "many", (MISSING, WRONG), required=False, when={"match": ("partly", "no")}),
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
