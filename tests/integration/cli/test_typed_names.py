"""Names as people type them: of models and benchmarks; what is said where a name is unknown."""

import pytest

from counterfoil import catalog
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.models import hub_reach
from refusals import refuses


@pytest.mark.parametrize(
    ("typed", "name"),
    [("sugar_crepe", "sugarcrepe"), ("Winoground", "winoground"), ("coco_5k", "coco-5k")],
)
def test_a_name_with_other_separators_or_capitals_gets_the_right_one(typed, name):
    refuses(f"did you mean '{name}'", catalog.benchmark, typed, error=UnknownNameError)


def test_an_unknown_name_gets_three_suggestions_and_the_command_that_lists_all():
    said = refuses("", catalog.benchmark, "coco-9k", error=UnknownNameError)
    listed = said.partition("allowed: ")[2].partition("; ")[0].split(", ")
    assert len(listed) == 4
    assert listed[-1].startswith("… (")
    assert said.endswith("'counterfoil list benchmarks' lists all")


@pytest.mark.parametrize(
    ("typed", "hint"),
    [
        ("nonsense", "counterfoil list scorers"),
        ("openai/clip-vit-base-patch32", "or 'hf:openai/clip-vit-base-patch32'?"),
        ("scores.csv", "did you mean 'given:scores.csv'"),
    ],
)
def test_a_model_without_its_kind_gets_a_hint(typed, hint):
    refuses(hint, catalog.scorer_name, typed, error=InputError)


def test_a_hub_that_does_not_answer_is_said_at_once(monkeypatch):
    said = "ConnectError: no route to host"
    monkeypatch.setattr(hub_reach, "unreachable", lambda: said)
    with pytest.raises(ModelError, match=rf"hf:nobody/none: .*; given: {said}; .*given:, .* need no network"):
        catalog.scorer("hf:nobody/none")
