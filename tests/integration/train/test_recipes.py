"""Recipes: the papers' values, names and files, and one clear line for whatever is wrong in one."""

import json
import subprocess
import sys
from dataclasses import asdict, fields, replace
from pathlib import Path

import pytest

from counterfoil.errors import InputError
from counterfoil.inputs.fields import changes_of
from counterfoil.train.recipes import RECIPES, read, read_file
from counterfoil.train.recipes.reading import overridden


def typed(key: str, text: str) -> object:
    """A recipe changed by `--set`."""
    recipe = RECIPES["pcme"]
    return overridden(recipe, changes_of(type(recipe), [f"{key}={text}"], "--set"), where="--set")


def file(folder: Path, text: str) -> Path:
    path = folder / "mine.toml"
    path.write_text(text, "utf-8")
    return path


def test_all_that_the_papers_train_is_there() -> None:
    expected = [
        "coco",
        "negclip",
        "trohn-text",
        "trohn-img",
        "pac",
        "vse0",
        "vse++",
        "vse++-warm",
        "pvse",
        "pcme",
        "detector",
    ]
    assert list(RECIPES) == expected
    assert all(recipe.name == name for name, recipe in RECIPES.items())
    assert all(recipe.about and recipe.source and recipe.left_open for recipe in RECIPES.values())


def test_networks_from_scratch_meet_all_negatives_first() -> None:
    # Adam at 2e-4, batches of 128, 30 epochs, a margin of 0.2 and gradients clipped at 2: VSE++'s defaults.
    first, second = RECIPES["vse++-warm"].staged()
    assert (first.mining, first.steps, second.mining, second.epochs) == ("sum", 500, "hardest", 30)
    for stage in (first, second):
        assert (stage.optimiser, stage.lr, stage.batch_size, stage.clip_norm) == ("adam", 2e-4, 128, 2.0)
        assert (stage.trains, stage.margin, stage.augment) == ("all", 0.2, "none")


@pytest.mark.parametrize(("name", "batch"), [("coco", 400), ("trohn-text", 200), ("trohn-img", 200)])
def test_values_of_bivlc(name: str, batch: int) -> None:
    # BiVLC Appendix E.3 and FORMATS 1c.
    recipe = RECIPES[name]
    assert (recipe.optimiser, recipe.betas, recipe.eps, recipe.weight_decay) == (
        "adamw",
        (0.9, 0.98),
        1e-6,
        0.1,
    )
    assert (recipe.lr, recipe.schedule, recipe.warmup, recipe.epochs) == (1e-6, "cosine", 50, 10)
    assert (recipe.batch_size, recipe.decay, recipe.select) == (batch, "matrices", "accuracy")
    assert (recipe.clip_norm, recipe.max_logit_scale, recipe.precision) == (None, None, "fp32")
    assert (recipe.augment, recipe.trains, recipe.stages) == ("none", "all", ())


def test_values_of_pac_s() -> None:
    pac = RECIPES["pac"]
    assert (pac.optimiser, pac.lr, pac.batch_size, pac.trains) == ("adamw", 1e-4, 256, "projections")
    assert (pac.lambda_v, pac.lambda_t, pac.patience, pac.select) == (0.05, 0.1, 1500, "loss")


@pytest.mark.parametrize("name", ["vse0", "vse++", "pvse", "pcme"])
def test_values_of_eccv_caption_in_two_stages(name: str) -> None:
    first, second = RECIPES[name].staged()
    assert (first.trains, first.lr, first.select) == (
        "heads" if name[0] == "p" else "projections",
        2e-4,
        "last",
    )
    assert (second.trains, second.lr, second.select) == ("all", 2e-5, "rsum")
    for stage in (first, second):
        assert (stage.optimiser, stage.weight_decay, stage.clip_norm) == ("adamp", 0.0, 2.0)
        assert (stage.epochs, stage.batch_size, stage.schedule, stage.stages) == (
            30,
            128,
            "cosine-epochs",
            (),
        )


def test_a_file_says_what_differs(tmp_path: Path) -> None:
    recipe, base, run = read_file(
        file(
            tmp_path,
            'recipe = "trohn-img"\nbatch_size = 64\nlr = 1\nbetas = [0.9, 0.999]\nsteps = "none"\n'
            '[run]\ndata = "trohn/"\n',
        )
    )
    expected = asdict(RECIPES["trohn-img"]) | {
        "name": "mine",
        "batch_size": 64,
        "lr": 1.0,
        "betas": (0.9, 0.999),
        "steps": None,
    }
    assert asdict(recipe) == expected
    assert type(recipe) is type(RECIPES["trohn-img"])
    assert isinstance(recipe.lr, float)
    assert base is RECIPES["trohn-img"]
    assert run == {"data": "trohn/"}


def test_an_override_holds_in_all_stages_and_stages_of_a_file_replace_all(tmp_path: Path) -> None:
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
        ('recipe = "coco"\nbatch_size = 1.5\n', ("key 'batch_size'", "1.5", "not a whole number")),
        ('recipe = "coco"\nbatch_size = true\n', ("key 'batch_size'", "True", "not a whole number")),
        ('recipe = "coco"\nbatch_size = 0\n', ("key 'batch_size'", "given: 0", "1 to 1,000,000")),
        ('recipe = "coco"\nlr = -1e-6\n', ("key 'lr'", "-1e-06", "above 0")),
        ('recipe = "coco"\nlr = inf\n', ("key 'lr'", "inf", "above 0")),
        ('recipe = "coco"\nlr = nan\n', ("key 'lr'", "nan", "above 0")),
        ('recipe = "coco"\nlr = "none"\n', ("key 'lr'", "given: none", "not a number")),
        ('recipe = "coco"\nbetas = [0.9]\n', ("key 'betas'", "given: 1; allowed: 2 of them")),
        ('recipe = "coco"\nbetas = [0.9, 1.0]\n', ("key 'betas'", "below 1")),
        ('recipe = "coco"\noptimiser = "sgd"\n', ("key 'optimiser'", "given: sgd", "adamw, adam, adamp")),
        ('recipe = "coco"\nselect = 3\n', ("key 'select'", "given: int; allowed: a text")),
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
def test_whatever_is_wrong_in_a_file_is_one_line_that_names_it(tmp_path: Path, text: str, parts) -> None:
    with pytest.raises(InputError) as caught:
        read(file(tmp_path, text))
    said = str(caught.value)
    assert said.startswith(str(tmp_path / "mine.toml"))
    assert "\n" not in said
    for part in parts:
        assert part in said


def test_a_name_that_nobody_knows(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"unknown recipe; given: trohn-image; .*did you mean 'trohn-img'\?"):
        read("trohn-image")
    with pytest.raises(InputError, match="no such file"):
        read(tmp_path / "none.toml")
    with pytest.raises(InputError, match=r"a recipe of your own is a file that ends in \.toml"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("lr", "3e-4", 3e-4),
        ("lr", "1", 1.0),
        ("steps", "20", 20),
        ("steps", "none", None),
        ("betas", "0.9,0.95", (0.9, 0.95)),
        ("optimiser", "adam", "adam"),
        ("select", "i2t_recall_at_1", "i2t_recall_at_1"),
        ("stages", "none", ()),
    ],
)
def test_values_as_they_are_typed(key: str, text: str, value: object) -> None:
    found = getattr(typed(key, text), key)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("key", "text"), [("lr", "much"), ("betas", "0.9"), ("steps", "1.5"), ("stages", "2")]
)
def test_typing_errors_are_one_line(key: str, text: str) -> None:
    with pytest.raises(InputError, match=r"^--set"):
        typed(key, text)


def test_a_recipe_is_plain_values() -> None:
    # They go into a checkpoint's facts as JSON.
    for recipe in RECIPES.values():
        known = json.loads(json.dumps(asdict(recipe)))
        assert set(known) == {field.name for field in fields(recipe)}


def test_recipes_load_no_torch() -> None:
    script = "import sys, counterfoil.train.recipes; assert 'torch' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", ["coco", "trohn-text", "negclip", "pac", "vse++", "vse++-warm", "pvse"])
def test_a_batch_of_one_has_nothing_to_choose_among(name: str) -> None:
    with pytest.raises(InputError, match=r"nothing to choose among.*given: 1; allowed: 2 or more"):
        replace(RECIPES[name], batch_size=1)
    assert replace(RECIPES[name], batch_size=2).batch_size == 2
    # Two batches of one row that count as one have two rows.
    assert replace(RECIPES[name], batch_size=1, accumulate=2).accumulate == 2


def test_only_pcme_erases_and_drops_words_by_itself() -> None:
    # As its released configuration for COCO has it.
    assert (RECIPES["pcme"].erasing, RECIPES["pcme"].word_drop) == (0.2, 0.1)
    others = [recipe for name, recipe in RECIPES.items() if name != "pcme"]
    assert {(recipe.erasing, recipe.word_drop) for recipe in others} == {(0.0, 0.0)}
    assert read("coco", erasing=1, word_drop=0.25).word_drop == 0.25
    for name in ("erasing", "word_drop"):
        with pytest.raises(InputError, match=rf"'{name}': out of range; given: 1.5; allowed: 0 to 1"):
            read("pcme", **{name: 1.5})


@pytest.mark.parametrize(
    ("name", "value"), [("accumulate", 2), ("augment", "crop-flip"), ("erasing", 0.1), ("word_drop", 0.1)]
)
def test_a_detector_has_nothing_to_vary_or_to_add_up(name: str, value: object) -> None:
    with pytest.raises(InputError, match=f"recipe detector, {name}: a detector learns from .* once; given: "):
        read("detector", **{name: value})


def test_two_pairs_of_one_row_are_enough() -> None:
    assert replace(RECIPES["trohn-img"], batch_size=1).batch_size == 1
