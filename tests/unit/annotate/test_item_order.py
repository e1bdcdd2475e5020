"""Assignment: exact designs, balance, and orders that follow from the seed alone."""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, strategies as st

from annotate.small_campaigns import pair
from counterfoil.annotate.assignment import posterior, still_needed
from counterfoil.annotate.campaign import CampaignRecipe
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.forms.builtin import BestOfK
from counterfoil.annotate.golden import is_golden_place, own_order
from counterfoil.annotate.item_order import plan_blocks, shown_order, work_order
from counterfoil.annotate.items import check_items
from counterfoil.errors import InputError
from refusals import refuses

DIRECTIONS = ("caption-0", "caption-1", "image-0", "image-1")


def recipe(**fields):
    return CampaignRecipe(form="yes-no", title="t", **fields)


def blocks_of(items, **fields):
    """The blocks as items, each held against what always holds."""
    made = recipe(design="blocks", **fields)
    blocks = [[items[i] for i in block] for block in plan_blocks(items, made)]
    work = Counter(item.id for block in blocks for item in block if item.role == "work")
    assert work == {item.id: made.overlap for item in items if item.role == "work"}
    for block in blocks:
        assert len({item.exclusion_group for item in block}) == len(block)
        assert sum(item.role == "golden" for item in block) == made.golden_per_block
        assert len(block) in (made.per_person, made.per_person - 1)
    return blocks


def test_the_human_baseline_of_bivlc_is_exact():
    items = [pair(f"{i}-{kind}", instance=str(i), kind=kind) for i in range(500) for kind in DIRECTIONS]
    blocks = blocks_of(items, overlap=1, per_person=100)
    assert len(blocks) == 20
    for block in blocks:
        assert Counter(item.kind for item in block) == dict.fromkeys(DIRECTIONS, 25)


def test_the_tasks_of_eccv_caption_have_one_golden_item_of_each_answer():
    items = [pair(str(i)) for i in range(180)]
    items += [pair(f"{right}-{i}", "golden", right) for right in ("yes", "no") for i in range(7)]
    blocks = blocks_of(items, overlap=3, per_person=20, golden_per_block=2)
    assert len(blocks) == 30
    for block in blocks:
        assert sorted(item.golden["match"][0] for item in block if item.golden) == ["no", "yes"]
    assert set(Counter(item.id for block in blocks for item in block if item.golden).values()) <= {4, 5}
    # Golden items are at no place more often than chance has it.
    assert len({i for block in blocks for i, item in enumerate(block) if item.golden}) > 12


def test_blocks_do_not_stay_alike_and_golden_items_stay_apart_from_work_of_their_instance():
    # Dealt in turn, three people would judge the same items throughout, and nobody else with them.
    blocks = blocks_of([pair(str(i)) for i in range(180)], overlap=3, per_person=18)
    assert max(len({i.id for i in a} & {i.id for i in b}) for a, b in combinations(blocks, 2)) < 9
    items = [pair(str(i), instance=str(i)) for i in range(10)]
    items += [pair(f"g{i}", "golden", "yes", instance=str(i)) for i in range(10)]
    blocks_of(items, overlap=1, per_person=6, golden_per_block=1)


def test_equal_seeds_give_equal_blocks_and_others_do_not():
    items = [pair(str(i), kind="ab"[i % 2]) for i in range(40)]
    plans = [plan_blocks(items, recipe(design="blocks", per_person=10, seed=seed)) for seed in (1, 1, 2)]
    assert plans[0] == plans[1] != plans[2]


@given(
    sizes=st.lists(st.integers(1, 4), min_size=4, max_size=30),
    overlap=st.integers(1, 3),
    per_person=st.integers(2, 9),
    seed=st.integers(0, 5),
)
def test_designs_hold_for_any_instances_or_are_refused(sizes, overlap, per_person, seed):
    items = [
        pair(f"{i}-{k}", instance=str(i), kind="abcd"[(i + k) % 4])
        for i, size in enumerate(sizes)
        for k in range(size)
    ]
    own = recipe(design="blocks", overlap=overlap, per_person=per_person, seed=seed)
    if max(sizes) * overlap > -(-len(items) * overlap // per_person):
        refuses(r"needs \d+ blocks, one per answer", plan_blocks, items, own, error=InputError)
        return
    blocks = [[items[i] for i in block] for block in plan_blocks(items, own)]
    lengths = {len(block) for block in blocks}
    assert max(lengths) - min(lengths) <= 1
    assert max(lengths) <= per_person
    assert set(Counter(item.id for block in blocks for item in block).values()) == {overlap}
    for block in blocks:
        assert len({item.exclusion_group for item in block}) == len(block)
    # Instances of several kinds can stand in the way of one more exchange, so kinds may be off by one more.
    for kind in "abcd":
        counts = [sum(item.kind == kind for item in block) for block in blocks]
        assert max(counts) - min(counts) <= 2


@pytest.mark.parametrize(
    ("golden", "message"),
    [([], "golden items do not go into blocks of 2"), ([pair("1g", "golden", "yes")], "given: 1 golden")],
)
def test_too_few_golden_items_are_refused(golden, message):
    items = [pair(str(i)) for i in range(20)] + golden
    with pytest.raises(InputError, match=message):
        plan_blocks(items, recipe(design="blocks", per_person=12, golden_per_block=2, overlap=1))


def test_the_queue_is_a_random_order_with_kinds_side_by_side():
    items = [pair(str(i), kind="ab" if i < 90 else "c") for i in range(120)]
    ranks = work_order(items, recipe())
    assert sorted(ranks) == list(range(120))
    order = np.argsort(ranks)
    rare = [sum(items[i].kind == "c" for i in order[first : first + 20]) for first in range(0, 120, 20)]
    assert set(rare) <= {4, 5, 6}
    assert list(order[:10]) != sorted(order[:10])
    assert (work_order(items, recipe(seed=1)) != ranks).any()


def test_options_are_in_each_order_as_often_and_right_answers_alternate():
    (best,) = BestOfK().page(WorkItem("1", {"caption": "A cat.", "images": ["a", "b", "c"]})).fields
    orders = Counter(shown_order(0, f"person {i}", "item", best) for i in range(3000))
    assert len(orders) == 6
    assert min(orders.values()) > 420
    assert {order[-1] for order in orders} == {3}
    items = [pair(f"{right}{i}", "golden", right) for right in ("yes", "no") for i in range(5)]
    order = [items[i].golden["match"][0] for i in own_order(items, 0, "p", "golden")]
    assert all({order[i], order[i + 1]} == {"yes", "no"} for i in range(0, 10, 2))


@pytest.mark.parametrize("share", [0.05, 0.1, 0.3, 1 / 3, 0.9])
def test_golden_places_keep_their_share_at_all_lengths(share):
    places = [is_golden_place(0, "p", i, share) for i in range(600)]
    for length in (60, 200, 600):
        assert abs(sum(places[:length]) - share * length) <= 1
    assert places != [is_golden_place(0, "q", i, share) for i in range(600)]


def test_the_posterior_is_that_of_bayes_and_votes_of_careless_people_weigh_less():
    # Accuracies (9 + 4) / 15 and (0 + 4) / 10 of three options, by hand.
    a, b = 13 / 15, 4 / 10
    weights = {"x": a * (1 - b) / 2, "y": (1 - a) / 2 * b, "z": (1 - a) / 2 * (1 - b) / 2}
    result = posterior([("x", 9, 1), ("y", 0, 5)], 3)
    assert result == pytest.approx({k: weights[k] / sum(weights.values()) for k in ("x", "y")})
    adaptive = recipe(design="adaptive", overlap=3, most=7, certainty=0.95)
    able, careless = [("yes", 20, 0)] * 3, [("yes", 5, 5)] * 3
    assert still_needed(able, 2, adaptive) == 3
    assert still_needed(careless, 2, adaptive) == 4
    assert still_needed([("yes", 5, 5)] * 7, 2, adaptive) == 7


def test_answers_are_asked_for_until_one_has_so_many_and_no_more():
    first = recipe(design="adaptive", overlap=1, first_to=3, most=5)
    rng = np.random.default_rng(0)
    for p in (0.5, 0.9):
        given = []
        while more := still_needed([(item, 0, 0) for item in given], 2, first) - len(given):
            # All that are wanted may be under way at once, and none of them is one too many.
            given += rng.choice(["yes", "no"], more, p=[p, 1 - p]).tolist()
        assert max(given.count("yes"), given.count("no")) == 3


def test_designs_that_cannot_be_are_refused_before_anything_is_written():
    items = [pair(f"{i}-{kind}", instance=str(i), kind=kind) for i in range(5) for kind in DIRECTIONS]
    check_items(items, recipe(design="blocks", overlap=2, per_person=5))
    items += [pair("0-more", instance="0", kind="more")]
    message = r"instance '0' needs 10 blocks, one per answer, but 21 items with an overlap of 2 fill only 9"
    refuses(message, check_items, items, recipe(design="blocks", overlap=2, per_person=5), error=InputError)


def test_pairs_of_people_do_the_same_block():
    items = [WorkItem(str(i), {}) for i in range(500)]
    blocks = plan_blocks(items, recipe(design="blocks", overlap=2, people_per_block=2, per_person=100))
    # BiVLC, appendix H.3: ten people in five pairs, 100 items each, every item judged by both of a pair.
    assert [len(block) for block in blocks] == [100] * 10
    members = [set(block) for block in blocks]
    assert all(members[i] == members[i + 1] for i in range(0, 10, 2))
    assert sorted(i for block in members[::2] for i in block) == list(range(500))
    # Each of them in an order of their own.
    assert blocks[0] != blocks[1]


def test_a_block_has_one_direction_after_the_other():
    kinds = ("i2t-0", "i2t-1", "t2i-0", "t2i-1")
    items = [WorkItem(f"{i}{kind}", {}, instance=str(i), kind=kind) for i in range(25) for kind in kinds]
    items += [WorkItem(f"g{i}", {}, "golden", {"best": ["a"]}) for i in range(9)]
    own = recipe(design="blocks", by_direction=True, overlap=1, per_person=27, golden_per_block=2)
    blocks = plan_blocks(items, own)
    for block in blocks:
        directions = [items[i].kind.partition("-")[0] for i in block]
        work = [item for item in directions if item]
        assert work == sorted(work)
        assert abs(work.count("i2t") - work.count("t2i")) <= 1
        assert directions.count("") == 2
    assert [*map(sorted, plan_blocks(items, replace(own, by_direction=False)))] == [*map(sorted, blocks)]
