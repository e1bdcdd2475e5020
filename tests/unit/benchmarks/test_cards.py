"""The catalog: its facts agree with each other, and every reader it names exists."""

from importlib import import_module

import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.catalog import benchmarks
from counterfoil.errors import UnknownNameError
from refusals import refuses

OWN = ("pairs", "gallery", "ratings", "preferences", "statements")


def test_the_benchmarks_there_are():
    assert len(benchmarks()) == 99
    refuses("did you mean 'bivlc'", card, "bivcl", error=UnknownNameError)


@pytest.mark.parametrize("each", benchmarks().values(), ids=list(benchmarks()))
def test_a_card_is_complete(each):
    module, _, function = each.reader.partition(":")
    assert callable(getattr(import_module(module), function))
    assert each.measures
    assert each.pitfalls
    if each.name not in OWN:
        assert each.licence
    if each.name not in OWN and not each.name.startswith("world-"):
        assert each.citation
        assert each.homepage.startswith("https://")
        # A split may also be one of local files.
        assert each.split or not each.hub
    assert each.revision == "" or len(bytes.fromhex(each.revision)) == 20  # a pinned revision is a full one
    assert each.form == "quad" or not {"group", "group_macro"} & set(each.measures)
    assert each.macro or not any(name.endswith("_macro") for name in each.measures)


def test_group_counts_add_up():
    bivlc, sugarcrepe, winoground = card("bivlc"), card("sugarcrepe"), card("winoground")
    subsets = ("add_obj", "add_att", "replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")
    for each in (bivlc, sugarcrepe):
        assert sum(each.counts[name] for name in subsets) == each.size
        assert sum(each.counts[name] for name in ("add", "replace", "swap")) == each.size
    assert sum(winoground.counts[name] for name in ("Relation", "Object", "Both")) == winoground.size
    assert sum(winoground.counts[f"{n}"] for n in ("1 Main Pred", "2 Main Preds")) == winoground.size
    assert sum(card("sugarcrepe-pp").counts.values()) == card("sugarcrepe-pp").size
    # The paper's edition of SugarCrepe has one item more, in swap_obj.
    assert sugarcrepe.also == {
        "swap_obj": sugarcrepe.counts["swap_obj"] + 1,
        "swap": sugarcrepe.counts["swap"] + 1,
        "same words": sugarcrepe.counts["same words"] + 1,
    }
