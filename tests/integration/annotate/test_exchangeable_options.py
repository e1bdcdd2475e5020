"""Labels and agreement of every form do not depend on the order in which a table has an item's options."""

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.annotate.agreement import campaign_agreement
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.labels import MODELS, item_labels, label_outcomes
from counterfoil.annotate.review import disputed_items
from served_campaign import CELLS

#: The questions of each form whose options are not the same thing from item to item; other forms have none.
EXCHANGEABLE = {
    "best-of-k": {"best"},
    "which-image": {"fits"},
    "choose": {"best"},
    "preference": {"better"},
    "quad-authoring": {"first_image", "second_image"},
    "quad-validation": {"first_image", "second_image"},
}


def questions(name):
    """The questions of a form that are answered by one option."""
    page = WORK_FORMS[name].form({}, where=name).page(WorkItem("1", CELLS[name]))
    return {item.name: item for item in page.fields if item.kind == "one"}


def answered(field, seed=0):
    """Answers of eight people to 40 items, the first option mostly, and new orders of the options."""
    rng = np.random.default_rng(seed)
    rows, orders = [], []
    for item in range(40):
        free = np.array(field.exchangeable_values)
        turned = dict(zip(free.tolist(), rng.permutation(free).tolist(), strict=True))
        orders.append({value: turned.get(value, value) for value in field.values})
        for person in rng.choice(8, 3, replace=False).tolist():
            at = 0 if rng.random() < 0.65 else int(rng.integers(len(field.values)))
            rows.append({"item": str(item), "person": f"p{person}", "answer": field.values[at]})
    return rows, orders


def table(rows, question):
    more = {"question": question, "seconds": 4.0, "golden": None}
    return pa.Table.from_pylist([row | more for row in rows])


def agreements(field, *tables):
    return [campaign_agreement(item, {field.name: field}, draws=50).to_json() for item in tables]


def test_forms_say_which_options_are_not_the_same_thing_throughout():
    for name in WORK_FORMS:
        exchangeable = {item.name for item in questions(name).values() if item.exchangeable}
        assert exchangeable == EXCHANGEABLE.get(name, set())


#: One form whose last option stays what it is, and one of which all are exchanged; the others are alike.
_IN_THE_SUITE = ("best-of-k", "choose")


@pytest.mark.usefixtures("few_draws")
@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[] if n in _IN_THE_SUITE else pytest.mark.slow) for n in EXCHANGEABLE]
)
def test_no_figure_depends_on_the_order_of_options(name):
    for question in sorted(EXCHANGEABLE[name]):
        field = questions(name)[question]
        rows, orders = answered(field)
        again = [{**row, "answer": orders[int(row["item"])][row["answer"]]} for row in rows]
        assert rows != again
        one, two = table(rows, question), table(again, question)
        first, second = agreements(field, one, two)
        assert first == second
        back = np.array([[field.values.index(order[value]) for value in field.values] for order in orders])
        for model in MODELS:
            mine, theirs = item_labels(one, field, model=model), item_labels(two, field, model=model)
            items = [int(item) for item in mine.items]
            turned_back = np.take_along_axis(theirs.posterior, back[items], 1)
            np.testing.assert_array_equal(turned_back, mine.posterior)
            labels = zip(items, mine.labels, strict=True)
            assert theirs.labels == tuple(orders[item].get(label, "") for item, label in labels)
        truth = {str(i): field.values[0] for i in range(40)}
        turned = {item: orders[int(item)][value] for item, value in truth.items()}
        # As texts, so that the majority's missing promise equals itself.
        assert repr(label_outcomes(one, field, truth)) == repr(label_outcomes(two, field, turned))
        disputes = [[(d.item, d.entropy) for d in disputed_items(item, field)] for item in (one, two)]
        assert disputes[0] == disputes[1]


def test_two_people_have_one_kappa_in_any_order():
    field = questions("best-of-k")["best"]
    rows, orders = answered(field)
    both = [row for row in rows if row["person"] in ("p1", "p2")]
    again = [{**row, "answer": orders[int(row["item"])][row["answer"]]} for row in both]
    first, second = agreements(field, table(both, "best"), table(again, "best"))
    assert first == second
    assert first["questions"][0]["alpha"]["value"] is not None


def test_guessing_is_chance_though_one_place_is_right_throughout():
    # Both always right, and the right one first: without the form's word nobody could agree beyond chance.
    field = questions("choose")["best"]
    rows = [{"item": str(i), "person": who, "answer": "0"} for i in range(40) for who in ("a", "b")]
    (result,) = campaign_agreement(table(rows, "best"), {"best": field}, draws=50).questions
    assert result.people.alpha.value == result.people.fleiss.value == 1.0
    assert result.people.alpha.low > 0.7
