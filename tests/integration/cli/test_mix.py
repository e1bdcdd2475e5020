"""`counterfoil train mix`: weights between two checkpoints."""

import json

import pytest
import torch


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    """Two networks of one architecture with different weights."""
    from counterfoil.models import checkpoint, small

    folder = tmp_path_factory.mktemp("ends")
    sizes = small.Sizes(picture=32, channels=(4, 8), words=8, hidden=16, width=8)
    for seed, name in enumerate(("start", "tuned")):
        made = small.backbone(["a red star above two moons"], sizes=sizes, seed=seed)
        checkpoint.save(folder / name, made, {})
    return folder / "start", folder / "tuned"


def test_a_mixture_is_kept_as_a_checkpoint(counterfoil, ends, tmp_path):
    from counterfoil.models import checkpoint

    mix = ("train mix", *ends, "--alpha", 0.25, "--out", tmp_path / "mixed")
    counterfoil.succeeds(*mix)
    start, tuned, mixed = (checkpoint.read(each).network for each in (*ends, tmp_path / "mixed"))
    for name, weights in mixed.named_parameters():
        expected = 0.75 * start.get_parameter(name) + 0.25 * tuned.get_parameter(name)
        assert torch.allclose(weights, expected, atol=1e-6), name
    assert checkpoint.facts(tmp_path / "mixed")["mixture"]["alpha"] == 0.25
    # Neither another mixture nor a training replaces it.
    (tmp_path / "rows.csv").write_text("image,caption\na.png,a cat\n")
    train = f"train coco --model small --data {tmp_path}/rows.csv --out {tmp_path}/mixed"
    for again in (mix, (train,)):
        counterfoil.refused(*again, says="mixed: the folder holds other files (")


def test_mixtures_end_in_what_the_ends_get(counterfoil, ends, tmp_path):
    for kind, n in (("quads", 14), ("choices", 14)):
        counterfoil.succeeds("world", "build", kind, "--n", n, "--size", 32, "--out", tmp_path / kind)
    tasks = ("--task", tmp_path / "quads", "--held-out", tmp_path / "choices")
    said = counterfoil.succeeds("train mix", *ends, *tasks, "--points", 3, "--json", "-")
    found = json.loads(said.out[said.out.index("{") :])["mixtures"]
    assert [each["alpha"] for each in found] == [0, 0.5, 1]
    for mixture, end in ((found[0], ends[0]), (found[-1], ends[1])):
        alone = counterfoil.succeeds("evaluate", end, tmp_path / "choices", "--json", "-")
        assert f'"value": {mixture["held_out"]}' in alone.out
