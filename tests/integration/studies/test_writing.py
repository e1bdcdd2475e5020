"""A study: its plan, its end on a terminal, and its files, whose page opens with what held."""

import base64
import io
import json
import re
from dataclasses import asdict

import PIL.Image
import pytest
from rich.console import Console

from counterfoil.cli.show import show_study
from counterfoil.studies.demo import write
from counterfoil.studies.plan import SHORT
from counterfoil.studies.runs import TUNED
from counterfoil.train.recipes import Coco, NegativePairs, NegativeTexts
from made_once import made_once
from tiny_study import TINY


@pytest.fixture(scope="module")
def written(made, tmp_path_factory):
    return made_once(tmp_path_factory, "written-study", lambda folder: write(made, folder, seconds=12.3))


def _pictures(html):
    found = re.findall(r"data:image/(?:webp|jpeg);base64,([A-Za-z0-9+/=]+)", html)
    return [PIL.Image.open(io.BytesIO(base64.b64decode(each))) for each in found]


def test_pictures_are_large_on_the_report_and_smaller_beside_questions(written):
    report = _pictures((written / "report.html").read_text())
    assert report
    assert {picture.size for picture in report} == {(192, 192)}
    html = (written / "questions.html").read_text()
    questions = _pictures(html)
    assert questions
    # Of a clip five frames, side by side.
    assert {picture.size for picture in questions} == {(96, 96), (5 * 96 + 4 * 2, 96)}
    data = json.loads(
        re.search(r'id="data">(.*?)</script>', (written / "questions.html").read_text(), re.S)[1]
    )
    assert [len(of["ids"]) for of in data["benchmarks"]] == [TINY.questions] * 2
    assert "see the same scenes at 32 x 32 pixels" in " ".join((written / "report.html").read_text().split())


def test_the_numbers_are_the_study_s(made, written):
    numbers = json.loads((written / "findings.json").read_text())
    assert [each["verdict"] for each in numbers["findings"]] == [each.verdict for each in made.findings]
    assert numbers["plan"] == json.loads(json.dumps(asdict(made.plan)))
    assert numbers["seconds"]["all"] == 12.3
    assert numbers["order"]["sentence"] == made.order.sentence


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


def test_what_was_found_is_said_in_full(made):
    console = Console(file=io.StringIO(), width=60, highlight=False)
    show_study(made, console)
    words = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "Networks of seed 0." in words
    for finding in [*made.findings, *made.captions.findings]:
        assert f"{finding.claim} {finding.verdict.capitalize()} in this run. {finding.sentence}" in words
    assert "Caption metrics. The oracle, which knows what is shown, has a correlation of 1.0" in words
    assert made.order is not None
    assert made.order.sentence in words
