"""Every form of work: its page, answers that fit it and do not, golden answers, items that it cannot show."""

import json
from dataclasses import fields
from typing import Any

import pytest

from counterfoil.annotate.campaign import images_of, items_table
from counterfoil.annotate.forms.base import WorkForm, WorkItem, WorkPage, check_answer, is_right
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.benchmarks.judgements import gain_of
from counterfoil.errors import InputError

PAIR = {"image": "a.png", "caption": "a red cat"}
#: Of every form: sound cells, the answer that its page gets, and what comes of it.
_SWAPPED = {"first_caption": "a dog bites a cat", "second_caption": "a cat bites a dog"}
CASES: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
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
        {
            "first_image": "0",
            "second_image": "1",
            **_SWAPPED,
            "swap": "object",
            "predicates": "1",
            "visual": [],
        },
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


def form(name: str, **settings: Any) -> WorkForm:
    return WORK_FORMS[name].form(settings, where="here")


def answered(name: str, cells: dict[str, Any], raw: dict[str, Any], **settings: Any) -> dict[str, Any]:
    """An answer as the server takes it: held against the page, then against the form."""
    made, item = form(name, **settings), WorkItem("1", cells)
    answer = check_answer(made.page(item), raw)
    made.check(item, answer)
    return answer


def shown_words(page: WorkPage) -> str:
    """All that a person sees of a page."""
    parts = [s.content + s.label for s in page.shown]
    for each in page.fields:
        parts += [each.prompt, *(o.label + " ".join(o.texts) + " ".join(o.images) for o in each.options)]
    return " ".join(parts)


def test_every_form_has_a_case() -> None:
    assert set(CASES) == {name for name in WORK_FORMS if not name.startswith("example")}


@pytest.mark.parametrize("name", CASES)
def test_a_form_says_of_itself_what_campaigns_need(name: str) -> None:
    made, (cells, *_) = form(name), CASES[name]
    assert isinstance(made, WorkForm)
    assert made.name == name
    assert WORK_FORMS[name].summary == made.summary
    assert set(cells) <= set(made.columns)
    assert made.seconds > 0
    assert made.instructions
    assert all(each.metadata.get("help") for each in fields(made))  # type: ignore[arg-type]
    page = made.page(WorkItem("1", cells))
    main = next(each for each in page.fields if each.name == made.main)
    assert main.kind == "one"
    assert main.required
    assert not main.when
    assert set(page.images) == set(images_of(made, WorkItem("1", cells)))
    assert all(0 <= each.last < max(1, len(each.options)) for each in page.fields)
    names = [each.name for each in page.fields]
    assert all(set(each.when) <= set(names[:at]) for at, each in enumerate(page.fields))
    assert all(len(set(each.values)) == len(each.values) for each in page.fields)


@pytest.mark.parametrize("name", CASES)
def test_answers_come_out_in_terms_of_values(name: str) -> None:
    cells, raw, answer = CASES[name]
    assert answered(name, cells, raw) == answer


@pytest.mark.parametrize("name", CASES)
def test_golden_answers_are_right_and_others_wrong(name: str) -> None:
    cells, _, answer = CASES[name]
    made = form(name)
    item = WorkItem("1", cells, "golden", {made.main: [answer[made.main]]})
    main = next(each for each in made.page(item).fields if each.name == made.main)
    assert is_right(item, answer) is True
    for value in main.values:
        other = {**answer, made.main: value}
        assert is_right(item, other) is (value == answer[made.main])


@pytest.mark.parametrize("name", CASES)
def test_an_item_without_a_cell_that_is_needed_is_refused(name: str) -> None:
    """Every cell of the case is taken away in turn; the form refuses, or does without it."""
    cells = CASES[name][0]
    without = {
        "preference": {"caption"},
        "quad-authoring": {"images", "topic"},
        "quad-validation": {"author"},
    }
    for column in cells:
        item = WorkItem("7", {**cells, column: None})
        if column in without.get(name, set()):
            assert form(name).page(item).fields
            continue
        with pytest.raises(InputError, match="item '7'") as error:
            form(name).page(item)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize("name", CASES)
def test_what_must_not_be_seen_is_not_on_the_page(name: str) -> None:
    made, cells = form(name), CASES[name][0]
    item = WorkItem(
        "1", cells, "golden", {made.main: ["hidden-golden"]}, "hidden-instance", "k", "hidden-truth"
    )
    words = shown_words(made.page(item))
    assert "hidden" not in words
    assert "someone" not in words
    # The names of rankings.
    assert name != "preference" or not {"A", "B"} & set(words.split())
    assert items_table([item], made).num_rows == 1


def test_the_four_answers_have_the_gains_that_judgements_have() -> None:
    (match, *_) = form("match").page(WorkItem("1", PAIR)).fields
    assert [gain_of(value) for value in match.values] == [1.0, 0.5, 0.0, 0.0]
    assert match.level == "ordinal"
    assert [match.coarser["yes or no"][value] for value in match.values] == ["yes", "yes", "no", "no"]


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"match": 0, "shortcomings": [0]}, "not open"),
        ({"match": 3, "shortcomings": [0]}, "not open"),
        ({"match": 1}, "field 'shortcomings': no answer"),
        ({"match": 2, "shortcomings": [0], "errors": [1]}, "not open"),
        ({"match": 2, "shortcomings": [2]}, "field 'errors': no answer"),
        ({"match": 2, "shortcomings": [2], "errors": [9]}, "field 'error': no answer"),
        ({"match": 2, "shortcomings": [2], "errors": [0], "error": "x"}, "not open"),
    ],
)
def test_questions_of_a_match_open_only_where_they_are_needed(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        answered("match", PAIR, raw)


def test_a_match_without_rationale_has_one_question() -> None:
    assert answered("match", PAIR, {"match": 1}, rationale=False) == {"match": "Partially YES"}


def test_the_image_chosen_and_the_caption_chosen_are_two_directions_of_one_form() -> None:
    page = form("choose").page(WorkItem("1", {"images": ["a", "b"], "captions": ["c"]}))
    assert page.fields[0].options[1].images == ("b",)
    assert [each.kind for each in page.shown] == ["text"]
    for cells in ({"images": ["a"], "captions": ["c"]}, {"images": ["a", "b"], "captions": ["c", "d"]}):
        with pytest.raises(InputError, match="one image with several captions"):
            form("choose").page(WorkItem("1", cells))


def test_neither_and_no_preference_are_settings() -> None:
    which = form("which-image", neither=True).page(WorkItem("1", CASES["which-image"][0])).fields[0]
    assert which.values == ("image", "negative_image", "both", "neither")
    assert which.last == 2
    better = form("preference", same=True).page(WorkItem("1", CASES["preference"][0])).fields[0]
    assert better.values == ("first", "second", "same")
    assert better.last == 1


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"second_images": None, "second_captions": ["c"]}, "both rankings are of images"),
        ({"second_captions": ["c"]}, "given: both"),
        ({"second": "A"}, "A twice"),
    ],
)
def test_rankings_that_cannot_be_compared(changed: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        form("preference").page(WorkItem("1", {**CASES["preference"][0], **changed}))


@pytest.mark.parametrize(
    ("settings", "values", "labels"),
    [
        ({}, 4, "describes the image without errors"),
        ({"levels": 5, "labels": ["bad", "good"]}, 5, "5: good"),
        ({"levels": 3, "labels": ["bad", "fair", "good"]}, 3, "2: fair"),
        ({"levels": 7}, 7, "7"),
    ],
)
def test_scales_of_ratings(settings: dict[str, Any], values: int, labels: str) -> None:
    (rating,) = form("rating", **settings).page(WorkItem("1", PAIR)).fields
    assert rating.values == tuple(str(step) for step in range(1, values + 1))
    assert any(labels in option.label for option in rating.options)
    assert form("rating", level="interval").page(WorkItem("1", PAIR)).fields[0].level == "interval"


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("rating", {"levels": 1}, "2 to 9"),
        ("rating", {"levels": 10}, "2 to 9"),
        ("rating", {"levels": 5, "labels": ["a", "b", "c"]}, "labels of a scale"),
        ("rating", {"level": "nominal"}, "ordinal, interval"),
        ("error-spans", {"kinds": ["a", "a"]}, "kinds of error"),
        ("quad-authoring", {"swaps": []}, "what is exchanged"),
    ],
)
def test_settings_that_make_no_form(name: str, settings: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message) as error:
        form(name, **settings)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"second_image": 0}, "the same one"),
        ({"second_caption": "A dog bites a cat"}, "both captions are the same"),
        ({"second_caption": "a cat bites dogs"}, "the same words"),
        ({"second_caption": "a cat a dog bites a"}, "the same words"),
    ],
)
def test_authors_keep_to_the_rules(changed: dict[str, Any], message: str) -> None:
    cells, raw, _ = CASES["quad-authoring"]
    with pytest.raises(InputError, match=message):
        answered("quad-authoring", cells, {**raw, **changed})


def test_authors_may_use_other_words_where_the_campaign_allows_it() -> None:
    cells, raw, _ = CASES["quad-authoring"]
    answer = answered("quad-authoring", cells, {**raw, "second_caption": "two cats sleep"}, same_words=False)
    assert answer["second_caption"] == "two cats sleep"


def test_a_topic_without_images_asks_for_captions_alone() -> None:
    page = form("quad-authoring").page(WorkItem("1", {"images": [], "topic": "pets"}))
    assert [each.name for each in page.fields if "image" in each.name] == []
    with pytest.raises(InputError, match="neither images nor a topic"):
        form("quad-authoring").page(WorkItem("1", {"images": None, "topic": None}))


def test_no_error_has_no_spans() -> None:
    assert answered("error-spans", PAIR, {"verdict": 0}) == {"verdict": "right"}
    with pytest.raises(InputError, match="field 'errors': no answer"):
        answered("error-spans", PAIR, {"verdict": 1, "errors": []})


def test_facts_of_a_form_are_plain_values() -> None:
    for name in CASES:
        assert json.loads(json.dumps(WORK_FORMS[name].facts))["label"] == form(name).main
