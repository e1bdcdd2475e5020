"""Recipes: the papers' values, names and files, and one clear line for whatever is wrong in one."""

import json
from dataclasses import asdict, fields, replace

import pytest

from counterfoil.errors import InputError
from counterfoil.inputs.fields import changes_of
from counterfoil.train.recipes import RECIPES, overridden, read, read_file
from processes import python
from refusals import refuses


def file(folder, text):
    path = folder / "mine.toml"
    path.write_text(text, "utf-8")
    return path


def test_all_that_the_papers_train_is_there():
    expected = "coco negclip trohn-text trohn-img pac vse0 vse++ vse++-warm pvse pcme detector"
    assert list(RECIPES) == expected.split()
    assert all(recipe.name == name for name, recipe in RECIPES.items())
    assert all(recipe.about and recipe.source and recipe.left_open for recipe in RECIPES.values())


BIVLC = {"optimiser": "adamw", "betas": (0.9, 0.98), "eps": 1e-6, "weight_decay": 0.1, "lr": 1e-6,
         "schedule": "cosine", "warmup": 50, "epochs": 10, "decay": "matrices", "select": "accuracy",
         "clip_norm": None, "max_logit_scale": None, "precision": "fp32", "augment": "none",
         "trains": "all", "stages": ()}  # fmt: skip
RETRIEVAL = {"optimiser": "adamp", "weight_decay": 0.0, "clip_norm": 2.0, "epochs": 30, "batch_size": 128,
             "schedule": "cosine-epochs", "stages": ()}  # fmt: skip
FIRST, SECOND = {**RETRIEVAL, "lr": 2e-4, "select": "last"}, {"trains": "all", "lr": 2e-5, "select": "rsum"}
#: Adam at 2e-4, batches of 128, a margin of 0.2 and gradients clipped at 2: VSE++'s defaults.
WARM = {"optimiser": "adam", "lr": 2e-4, "batch_size": 128, "clip_norm": 2.0, "trains": "all",
        "margin": 0.2, "augment": "none"}  # fmt: skip
PAC = {"optimiser": "adamw", "lr": 1e-4, "batch_size": 256, "trains": "projections", "lambda_v": 0.05,
       "lambda_t": 0.1, "patience": 1500, "select": "loss"}  # fmt: skip
#: The values of the papers, stage by stage: BiVLC Appendix E.3, PAC-S, ECCV Caption, VSE++.
VALUES = {
    "coco": [{**BIVLC, "batch_size": 400}],
    "trohn-text": [{**BIVLC, "batch_size": 200}],
    "trohn-img": [{**BIVLC, "batch_size": 200}],
    "pac": [PAC],
    **{name: [{**FIRST, "trains": "projections"}, RETRIEVAL | SECOND] for name in ("vse0", "vse++")},
    **{name: [{**FIRST, "trains": "heads"}, RETRIEVAL | SECOND] for name in ("pvse", "pcme")},
    "vse++-warm": [{**WARM, "mining": "sum", "steps": 500}, {**WARM, "mining": "hardest", "epochs": 30}],
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_the_papers(name):
    for stage, values in zip(RECIPES[name].staged(), VALUES[name], strict=True):
        assert {key: getattr(stage, key) for key in values} == values


def test_a_file_says_what_differs(tmp_path):
    text = 'recipe = "trohn-img"\nbatch_size = 64\nlr = 1\nbetas = [0.9, 0.999]\nsteps = "none"\n'
    recipe, base, run = read_file(file(tmp_path, text + '[run]\ndata = "trohn/"\n'))
    changed = {"name": "mine", "batch_size": 64, "lr": 1.0, "betas": (0.9, 0.999), "steps": None}
    assert recipe == replace(RECIPES["trohn-img"], **changed)
    assert (base, run) == (RECIPES["trohn-img"], {"data": "trohn/"})


def test_an_override_holds_in_all_stages_and_stages_of_a_file_replace_all(tmp_path):
    assert [stage.lr for stage in read("pcme", lr=0.01).staged()] == [0.01, 0.01]
    assert [stage.trains for stage in read("pcme", lr=0.01).staged()] == ["heads", "all"]
    assert len(read("pcme", stages=()).staged()) == 1
    three = file(tmp_path, 'recipe = "coco"\n[[stages]]\nepochs = 1\n[[stages]]\nepochs = 2\n[[stages]]\n')
    assert [stage.epochs for stage in read(three).staged()] == [1, 2, 10]
    assert [stage.epochs for stage in read(three, epochs=5).staged()] == [5, 5, 5]


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ('recipe = "coco"\nbatchsize = 3\n', ("unknown key", "batchsize", "did you mean 'batch_size'?")),
        ('recipe = "coco"\nlambda_v = 3\n', ("unknown key", "lambda_v", "lr, max_logit_scale")),
        ('recipe = "coco"\nbatch_size = "big"\n', ("key 'batch_size'", "given: big", "not a whole number")),
        ('recipe = "coco"\nbetas = [0.9]\n', ("key 'betas'", "given: 1; allowed: 2 of them")),
        ('recipe = "coco"\nbetas = [0.9, 1.0]\n', ("key 'betas'", "below 1")),
        ('recipe = "coco"\n[[stages]]\nlr = 0\n', ("stage 1, key 'lr'", "above 0")),
        ('recipe = "coco"\n[[stages]]\n[[stages]]\nmargin = 1\n', ("stage 2", "unknown key", "margin")),
        ('recipe = "coco"\n[[stages]]\nname = "x"\n', ("stage 1", "no name of its own")),
        ('recipe = "coco"\nstages = 3\n', ("no list of tables",)),
        ('recipe = "cocoa"\n', ("key 'recipe'", "unknown recipe", "did you mean 'coco'?")),
        ("lr = 1\n", ("says no recipe", "trohn-img")),
        ("recipe = 3\n", ("is no name", "given: 3")),
        ('recipe = "coco"\nrun = 3\n', ("'run' is no table",)),
        ("recipe = coco\n", ("not valid TOML", "line 1")),
    ],
)
def test_whatever_is_wrong_in_a_file_is_one_line_that_names_it(tmp_path, text, parts):
    said = refuses("", read, file(tmp_path, text), error=InputError)
    assert said.startswith(str(tmp_path / "mine.toml"))
    for part in parts:
        assert part in said


def test_a_name_that_nobody_knows(tmp_path):
    with pytest.raises(InputError, match=r"unknown recipe; given: trohn-image; .*did you mean 'trohn-img'\?"):
        read("trohn-image")
    refuses("no such file", read, tmp_path / "none.toml", error=InputError)
    refuses(r"a recipe of your own is a file that ends in \.toml", read, tmp_path, error=InputError)


def test_values_as_they_are_typed():
    typed = changes_of(type(RECIPES["pcme"]), ["betas=0.9,0.95", "steps=none", "stages=none"], "--set")
    recipe = overridden(RECIPES["pcme"], typed, where="--set")
    assert (recipe.betas, recipe.steps, recipe.stages) == ((0.9, 0.95), None, ())
    with pytest.raises(InputError, match=r"^--set.*no list of tables"):
        overridden(recipe, changes_of(type(recipe), ["stages=2"], "--set"), where="--set")


def test_a_recipe_is_plain_values():
    # They go into a checkpoint's facts as JSON.
    for recipe in RECIPES.values():
        assert set(json.loads(json.dumps(asdict(recipe)))) == {field.name for field in fields(recipe)}


def test_recipes_load_no_torch():
    done = python("-c", "import sys, counterfoil.train.recipes; assert 'torch' not in sys.modules")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["coco", "trohn-text", "negclip", "pac", "vse++", "vse++-warm", "pvse"])
def test_a_batch_of_one_has_nothing_to_choose_among(name):
    with pytest.raises(InputError, match=r"nothing to choose among.*given: 1; allowed: 2 or more"):
        replace(RECIPES[name], batch_size=1)
    assert replace(RECIPES[name], batch_size=2).batch_size == 2
    # Two batches of one row that count as one have two rows; a pair and its negative pair are two, too.
    assert replace(RECIPES[name], batch_size=1, accumulate=2).accumulate == 2
    assert replace(RECIPES["trohn-img"], batch_size=1).batch_size == 1


@pytest.mark.parametrize(
    ("name", "value"), [("accumulate", 2), ("augment", "crop-flip"), ("erasing", 0.1), ("word_drop", 0.1)]
)
def test_a_detector_has_nothing_to_vary_or_to_add_up(name, value):
    with pytest.raises(InputError, match=f"recipe detector, {name}: a detector learns from .* once; given: "):
        read("detector", **{name: value})
