"""The registry of measures: names that parse and print alike, and what it refuses to add."""

import numpy as np
import pytest

from counterfoil.catalog import register
from counterfoil.errors import InputError
from counterfoil.metrics.measures import DIRECTIONS, FORMS, MEASURES, Measure, every, find, of_form
from refusals import refuses


def first_above_0(scores, *, ties):
    return (scores[:, 0, 0] > 0) * 1.0


OWN = Measure("first_positive", "quad", "First", "the first pair scores above 0", "1/2", first_above_0)


def test_names_parse_and_print_alike():
    for form in FORMS:
        sides = [""] if form != "gallery" else ["", *(f"{side}_" for side in DIRECTIONS)]
        for measure in of_form(form):
            for side in sides:
                result = find(side + measure.name, form)
                assert result is not None
                assert (str(result), result.form) == (side + measure.name, form)
    assert str(find("mean_recall_at_137")) == "mean_recall_at_137"


@pytest.mark.parametrize("name", ["recall_at_05", "recall_at_0", "recall_at_K5", "i2t_group", "Group"])
def test_other_writings_are_no_names(name):
    assert find(name) is None


def test_a_list_of_all_has_each_once_says_what_k_is_and_which_are_signed():
    names = [(measure.form, measure.name) for measure in every()]
    assert len(set(names)) == len(names)
    assert ("gallery", "recall_at_K") in names
    assert {form for form, _ in names} == set(FORMS)
    signed = {measure.name for measure in every() if measure.signed}
    assert signed == {"kendall_tau_b", "kendall_tau_c", "spearman", "pearson"}


def test_a_measure_has_one_arithmetic_and_shares_are_in_0_to_1():
    refuses("needs one arithmetic", Measure, "none", "quad", "None", "nothing", "0", error=InputError)
    with pytest.raises(InputError, match=r"must be in \[0, 1\]"):
        Measure("wide", "quad", "Wide", "too wide", "0", first_above_0, range=(-1.0, 1.0))
    with pytest.raises(InputError, match="no such form of question; given: triple"):
        register(Measure("other", "triple", "Other", "of another form", "0", first_above_0))
    refuses("a mean over groups", find("accuracy_macro"), error=InputError)


def test_what_cannot_be_registered():
    for reason, *facts in (
        ("of this name already", "group", "quad", "Group", "as group", "1/6", first_above_0),
        ("so it is 'group'", "i2t_group", "quad", "Group", "as group", "1/6", first_above_0),
        ("another label", "accuracy", "quad", "Precision", "as accuracy", "1/2", first_above_0),
        ("of this name already", "recall_at_7", "gallery", "R@7", "as recall", "R/n", first_above_0),
    ):
        refuses(reason, MEASURES.register, Measure(*facts), error=InputError)
    tau = Measure("tau", "rated", "Tau", "a correlation", "0", of_all=np.dot, range=(-1.0, 1.0))
    refuses("value per question", MEASURES.register, tau, error=InputError)


def test_one_that_is_registered_is_found(monkeypatch):
    monkeypatch.setattr(MEASURES, "_by_name", dict(MEASURES))
    monkeypatch.setattr(MEASURES, "_of", {})
    assert MEASURES.register(OWN) is OWN
    assert find("first_positive") is OWN
    assert of_form("quad")[-1] is OWN
