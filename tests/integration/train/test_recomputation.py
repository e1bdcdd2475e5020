"""Layers that are computed again in the backward pass: the same gradients, and less that is kept."""

import numpy as np
import PIL.Image
import pytest
import torch

from counterfoil.models import recurrent, registry, small
from counterfoil.train.gradients import blocks, recomputed
from counterfoil.train.losses import info_nce
from tiny_families import save_clip, write_random_checkpoint

TEXTS = ("a red dog", "two cats on a table", "water", "a street in the rain")
#: How many blocks a network has, and the most that is kept of what training without it keeps.
KINDS = {
    "open-clip": (4, 0.5),
    "open-clip resnet": (6, 0.7),
    "hf": (4, 0.7),
    "small": (3, 0.9),
    "vse": (3, 0.9),
}


def made(kind, folder):
    if kind == "small":
        return small.backbone(TEXTS, seed=0)
    if kind == "vse":
        return recurrent.backbone(TEXTS, kind="vse", seed=0)
    if kind == "hf":
        save_clip(folder / "hf")
        return registry.backbone(f"hf:{folder / 'hf'}")
    backbone = registry.backbone(write_random_checkpoint(folder / "open-clip"))
    if kind == "open-clip resnet":
        from open_clip.modified_resnet import ModifiedResNet

        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            width = backbone.network.encode_images(backbone.sample()).points.shape[1]
            model = backbone.network.model
            model.visual = ModifiedResNet([2, 2, 1, 1], width, heads=2, image_size=96, width=8)
    return backbone


def step(backbone, *, checkpoint):
    """Gradients, buffers afterwards, and the bytes that were kept for the backward pass."""
    network = backbone.network
    rng = np.random.default_rng(0)
    pictures = [PIL.Image.fromarray(rng.integers(0, 256, (96, 96, 3), np.uint8)) for _ in TEXTS]
    pixels = backbone.pixels([backbone.preparation(each) for each in pictures]).double()
    kept = {}
    own = {each.untyped_storage().data_ptr() for each in network.parameters()}

    def keep(tensor):
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    network.zero_grad()
    torch.manual_seed(1)
    with recomputed(network, checkpoint):
        with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
            answer = network(pixels, backbone.tokens(TEXTS))
            loss = info_nce(answer.images.points, answer.texts.points, answer.logit_scale.exp())
        loss.backward()
    grads = {name: each.grad.clone() for name, each in network.named_parameters() if each.grad is not None}
    return grads, {name: each.clone() for name, each in network.named_buffers()}, sum(kept.values())


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_the_same_and_less_is_kept(kind, tmp_path):
    backbone = made(kind, tmp_path)
    network = backbone.network.double().train()
    count, share = KINDS[kind]
    assert len(blocks(network)) == count
    for module in network.modules():
        # Attention draws at random, as none of these does by itself.
        if isinstance(getattr(module, "dropout", None), float):
            module.dropout = 0.3
    before = {name: each.clone() for name, each in network.state_dict().items()}
    expected, buffers, whole = step(backbone, checkpoint=False)
    network.load_state_dict(before)
    found, again, kept = step(backbone, checkpoint=True)
    assert found.keys() == expected.keys()
    for name, each in expected.items():
        torch.testing.assert_close(found[name], each, rtol=1e-6, atol=1e-6 * float(each.abs().max()))
    assert max(float(each.abs().max()) for each in expected.values()) > 1e-3
    # Batch norms have counted the batch once.
    for name, each in buffers.items():
        torch.testing.assert_close(again[name], each)
    assert 0 < kept < share * whole
    # What was put in the networks' way is gone.
    assert not any({"forward", "encode_images"} & vars(module).keys() for module in network.modules())
    assert step(backbone, checkpoint=False)[2] == whole
