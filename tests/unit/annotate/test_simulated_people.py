"""Simulated people answer every form, and are right as often as they are made to be."""

import numpy as np
import pytest

from annotate.test_forms import CASES, answered
from counterfoil.annotate.forms.base import AnswerOption, FormField, WorkForm, WorkItem, WorkPage
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.simulation import KINDS, SimulatedPerson, crowd, respond
from counterfoil.errors import InputError
from refusals import refuses


class Scale(WorkForm):
    """A form of one field, whose level is given."""

    main = "rating"

    def __init__(self, n, level):
        options = tuple(AnswerOption(str(i)) for i in range(n))
        self.fields = (FormField("rating", "?", options=options, level=level),)

    def page(self, item):
        return WorkPage((), self.fields)


def places(person, form, truth, n=1500):
    """How often each option was taken."""
    item, rng = WorkItem("1", {}, truth=truth), np.random.default_rng(0)
    taken = [respond(person, form, item, form.page(item), rng)[0]["rating"] for _ in range(n)]
    return np.bincount(taken, minlength=len(form.fields[0].options)) / n


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_people_are_right_as_often_as_their_chances_say(kind):
    person = KINDS[kind]
    # The right option is the first one in one of four items, as in a campaign with shuffled sides.
    right = np.mean([places(person, Scale(4, "nominal"), str(i))[i] for i in range(4)])
    blind = person.first + person.guesses
    assert right == pytest.approx(blind / 4 + (1 - blind) * person.accuracy, abs=0.04)


def test_wrong_answers_on_a_scale_are_beside_the_right_one_and_any_where_none_is_known():
    person = SimulatedPerson("a", accuracy=0.5)
    assert places(person, Scale(4, "ordinal"), "1") == pytest.approx([0.25, 0.5, 0.25, 0], abs=0.04)
    assert places(person, Scale(4, "ordinal"), "3") == pytest.approx([0, 0, 0.5, 0.5], abs=0.04)
    assert places(person, Scale(4, "nominal"), "3") == pytest.approx([1 / 6, 1 / 6, 1 / 6, 0.5], abs=0.04)
    assert places(KINDS["able"], Scale(4, "nominal"), "") == pytest.approx([0.25] * 4, abs=0.04)


@pytest.mark.parametrize("form", sorted(set(WORK_FORMS)))
@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_form_takes_what_they_answer(form, kind):
    made, item = WORK_FORMS[form].form({}, where=""), WorkItem("1", CASES[form][0])
    rng = np.random.default_rng(3)
    for _ in range(5):
        raw, seconds = respond(KINDS[kind], made, item, made.page(item), rng)
        assert made.main in answered(form, item.cells, raw)
        assert seconds > 0


def test_bots_take_the_same_time_each_time_and_others_do_not():
    form, item, rng = Scale(2, "nominal"), WorkItem("1", {}), np.random.default_rng(0)
    bot, able = (
        [respond(KINDS[kind], form, item, form.page(item), rng)[1] for _ in range(2000)]
        for kind in ("bot", "able")
    )
    assert set(bot) == {KINDS["bot"].seconds}
    assert (np.mean(able), np.std(able)) == pytest.approx((1.0, 0.5), abs=0.05)


def test_a_crowd_has_the_shares_asked_for():
    people = crowd({"able": 0.8, "hasty": 0.1, "bot": 0.1}, 50, seconds=6.0, accuracy=0.85)
    counts = {kind: sum(person.kind == kind for person in people) for kind in KINDS}
    assert counts == {**dict.fromkeys(KINDS, 0), "able": 40, "hasty": 5, "bot": 5}
    assert len({person.name for person in people}) == 50
    assert {person.accuracy for person in people if person.kind == "able"} == {0.85}
    assert people[-1].seconds == pytest.approx(0.3)


@pytest.mark.parametrize("shares", [{}, {"able": 0.0}, {"lazy": 1.0}, {"able": 2.0, "bot": -1.0}])
def test_crowds_that_cannot_be_are_refused(shares):
    refuses("kinds of simulated people", crowd, shares, 3, error=InputError)
