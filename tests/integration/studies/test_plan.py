"""Plans: the same steps for all trainings, the papers' losses, and numbers that do not depend on results."""

from counterfoil.studies.plan import SHORT
from counterfoil.studies.runs import TUNED
from counterfoil.train.recipes import Coco, NegativePairs, NegativeTexts


def test_the_trainings_that_are_compared_differ_in_nothing_but_their_negatives():
    plan = SHORT
    recipes = {name: plan.recipe(name, seed=0) for name in TUNED}
    assert [type(each) for each in recipes.values()] == [Coco, NegativeTexts, NegativePairs]
    parts = recipes, {name: plan.first(name, seed=0) for name in TUNED}
    for name in ("steps", "lr", "weight_decay", "max_logit_scale", "seed", "select", "schedule"):
        assert all(len({getattr(each, name) for each in part.values()}) == 1 for part in parts), name
    # As many captions in a batch: hard negatives come on top of half of it.
    sizes = {name: each.batch_size * (1 if name == "coco" else 2) for name, each in recipes.items()}
    assert set(sizes.values()) == {plan.batch_size}
    # The one on loose captions has no curriculum, and as many steps.
    alone = plan.recipe("pretrained", seed=0)
    assert isinstance(alone, Coco)
    assert alone.steps == parts[0]["coco"].steps + parts[1]["coco"].steps
    assert (alone.lr, alone.batch_size) == (recipes["coco"].lr, recipes["coco"].batch_size)


def test_the_seed_is_the_recipe_s():
    assert {SHORT.recipe(name, seed=7).seed for name in ("pretrained", *TUNED)} == {7}
