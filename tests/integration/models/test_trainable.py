"""Models of the libraries open for training: equal to the library's own towers, every parameter reached."""

import shutil

import numpy as np
import pytest
import torch
import transformers
from transformers import AutoImageProcessor, AutoModel

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.models import hf, open_clip, registry
from counterfoil.models.base import Options
from counterfoil.models.images import Untouched
from embedded import forward
from refusals import refuses
from tiny_families import save_family

pytest.importorskip("open_clip")

pytestmark = pytest.mark.usefixtures("tiny_architectures")

CPU = Options(device="cpu")


def answered(backbone, images, captions):
    """Unit vectors of both towers, as numpy."""
    backbone.network.eval()
    with torch.inference_mode():
        answer = forward(backbone, images, captions)
    points = (answer.images.points, answer.texts.points)
    return tuple(torch.nn.functional.normalize(item, dim=-1).numpy() for item in points)


def gradients(backbone, images, captions):
    """The names of trainable parameters that a loss over all pairs does not reach."""
    backbone.network.train()
    answer = forward(backbone, images, captions)
    assert answer.logit_scale.shape == ()
    images_, texts = (torch.nn.functional.normalize(item.points, dim=-1) for item in answer[:2])
    logits = answer.logit_scale.exp() * images_ @ texts.T
    torch.nn.functional.cross_entropy(logits, torch.arange(len(logits))).backward()
    parameters = backbone.network.named_parameters()
    return [name for name, item in parameters if item.requires_grad and item.grad is None]


@pytest.mark.parametrize(
    ("name", "length"),
    [
        # Cut to the longest caption where that is exact, else in full.
        ("open-clip:tiny-quickgelu", 17),
        ("open-clip:tiny-custom", 17),
        ("open-clip:tiny-last", 77),
        ("hf:clip", 17),
        ("hf:siglip", 64),
        # BERT's kinds get a mask of padding.
        ("hf:align", 64),
        ("hf:altclip", 64),
    ],
)
def test_answers_are_those_of_the_model(name, length, request, drawn_images, tmp_path):
    library, _, kind = name.partition(":")
    captions = [Caption(text, text) for text in ("a red cat on the mat", "the dog", "cat " * 15)]
    if library == "open-clip":
        argument = f"{kind}/{request.getfixturevalue('checkpoint')(kind)}"
        model = open_clip.load(argument, CPU)
    else:
        own = request.getfixturevalue(f"{kind}_folder") if kind in ("clip", "siglip") else None
        argument = str(own or save_family(kind, tmp_path / kind))
        model = hf.load(argument, CPU)
    backbone = registry.backbone(f"{library}:{argument}")
    assert backbone.tokens([str(caption.text) for caption in captions]).shape == (3, length)
    images, texts = answered(backbone, drawn_images, captions)
    assert abs(next(model.embed_captions([captions])) - texts).max() <= 1e-5
    pictures = next(model.embed_images([drawn_images]))
    # The model of transformers makes pictures small by torchvision, not by Pillow: a level of 255 here and
    # there.
    assert (images * pictures).sum(axis=1).min() > 0.99
    assert library == "hf" or abs(images - pictures).max() <= 1e-5
    assert np.isfinite(float(backbone.network.logit_scale.detach()))


@pytest.mark.parametrize("family", ["clip_folder", "siglip_folder"])
def test_pixels_are_the_processors_but_for_a_level(family, request, photographs):
    folder = request.getfixturevalue(family)
    backbone, processor = registry.backbone(f"hf:{folder}"), AutoImageProcessor.from_pretrained(folder)
    std = torch.tensor(processor.image_std).view(3, 1, 1)
    for image in photographs[:12]:
        picture = image.decode()
        mine = backbone.pixels([backbone.preparation(picture)])
        levels = (mine - processor(images=[picture], return_tensors="pt")["pixel_values"]).abs() * std * 255
        assert levels.max() < 3.01
        assert levels.mean() < 0.5


def test_other_processors_are_left_to_the_library_if_they_give_one_tensor_of_pixels(
    clip_folder, tmp_path, drawn_images
):
    folder = tmp_path / "rectangular"
    shutil.copytree(clip_folder, folder)
    size = {"height": 32, "width": 32}
    transformers.CLIPImageProcessor(size=size, crop_size=size).save_pretrained(folder)
    model, backbone = hf.load(str(folder), CPU), registry.backbone(f"hf:{folder}")
    assert isinstance(backbone.preparation, Untouched)
    images, _ = answered(backbone, drawn_images, [Caption("a", "a cat")])
    assert abs(next(model.embed_images([drawn_images])) - images).max() <= 1e-5
    other = f"hf:{save_family('siglip2', tmp_path / 'siglip2')}"
    refuses("cannot embed a picture and a caption", registry.backbone, other, error=ModelError)


def test_every_parameter_is_trained(checkpoint, clip_folder, siglip_folder, drawn_images, captions):
    specs = [f"open-clip:{name}/{checkpoint(name)}" for name in ("tiny", "tiny-custom", "tiny-last")]
    for spec in (*specs, f"hf:{clip_folder}", f"hf:{siglip_folder}"):
        backbone = registry.backbone(spec)
        assert all(item.requires_grad for item in backbone.network.parameters())
        assert {item.dtype for item in backbone.network.parameters()} == {torch.float32}
        # Distributed training hangs on parameters that a step does not reach.
        assert gradients(backbone, drawn_images[:6], captions[:6]) == []


def test_gradients_are_those_of_the_full_length(checkpoint, tiny_model, captions):
    import open_clip

    backbone, model = registry.backbone(f"open-clip:tiny/{checkpoint('tiny')}"), tiny_model("tiny")
    texts = [str(caption.text) for caption in captions[:4]]
    weights = torch.linspace(-1, 1, 4 * 32).sin().view(4, 32)
    (backbone.network.encode_texts(backbone.tokens(texts)).points * weights).sum().backward()
    (model.encode_text(open_clip.SimpleTokenizer()(texts)) * weights).sum().backward()
    grads = {name: item.grad for name, item in backbone.network.named_parameters()}
    mine = {name.removeprefix("model."): grad for name, grad in grads.items() if grad is not None}
    exact = {name: item.grad for name, item in model.named_parameters() if item.grad is not None}
    assert mine.keys() == exact.keys()
    for name, gradient in exact.items():
        assert float((mine[name] - gradient).abs().max()) <= 1e-4 * max(1.0, float(gradient.abs().max()))


def test_projections_are_the_last_maps(checkpoint, clip_folder, siglip_folder):
    def names(spec):
        network = registry.backbone(spec).network
        wanted = {id(item) for item in network.projections()}
        return [name for name, item in network.named_parameters() if id(item) in wanted]

    assert names(f"open-clip:tiny/{checkpoint('tiny')}") == ["model.text_projection", "model.visual.proj"]
    last = names(f"open-clip:tiny-last/{checkpoint('tiny-last')}")
    assert last == ["model.visual.proj", "model.text.text_projection"]
    assert names(f"hf:{clip_folder}") == ["model.visual_projection.weight", "model.text_projection.weight"]
    # SigLIP pools with an attention of its own and has no such map.
    assert names(f"hf:{siglip_folder}") == []
    # It keeps its bias.
    network = registry.backbone(f"hf:{siglip_folder}").network
    model = AutoModel.from_pretrained(siglip_folder)
    assert network.logit_bias.item() == model.logit_bias.item()
    assert network.logit_scale.item() == model.logit_scale.item()
    assert "model.logit_bias" in network.state_dict()


def test_random_weights_are_random_and_repeatable():
    result = []
    for seed in (3, None, 3):
        if seed:
            torch.manual_seed(seed)
        result.append(registry.backbone("open-clip:tiny").network.model.visual.conv1.weight)
    assert torch.equal(result[0], result[2])
    assert not torch.equal(result[0], result[1])


@pytest.mark.parametrize("kind", ["open-clip", "hf"])
def test_places_are_what_the_towers_see(kind, checkpoint, clip_folder, drawn_images, captions):
    spec = f"open-clip:tiny/{checkpoint('tiny')}" if kind == "open-clip" else f"hf:{clip_folder}"
    backbone = registry.backbone(spec)
    network = backbone.network.eval()
    pixels = backbone.pixels([backbone.preparation(image.decode()) for image in drawn_images[:3]])
    tokens = backbone.tokens([str(caption.text) for caption in captions[:3]])
    with torch.inference_mode():
        images, texts = network.local_images(pixels), network.local_texts(tokens)
        answer = network(pixels, tokens)
    assert torch.allclose(images.whole, answer.images.points, atol=1e-6)
    assert torch.allclose(texts.whole, answer.texts.points, atol=1e-6)
    # 32 pixels in patches of 8.
    assert images.tokens.shape[:2] == (3, 16)
    assert texts.tokens.shape[:2] == tokens.shape
    # begin, "cats", end: what follows is padding.
    assert texts.nothing[0].tolist() == [False] * 3 + [True] * (tokens.shape[1] - 3)


@pytest.mark.parametrize(
    ("spec", "error", "pattern"),
    [
        ("blip:base", UnknownNameError, "unknown kind of trainable model; given: blip; allowed: hf"),
        ("open-clip", InputError, "the model lacks its name; given: open-clip; allowed: open-clip:ARCH"),
        ("hf:", InputError, "the model lacks its name"),
        ("open-clip:ViT-B32", ModelError, "no such architecture; given: ViT-B32.*did you mean ViT-B-32"),
        ("open-clip:roberta-ViT-B-32", ModelError, "its architecture is not here and cannot be downloaded"),
    ],
)
def test_specs_that_lead_nowhere(spec, error, pattern):
    refuses(pattern, registry.backbone, spec, error=error)
