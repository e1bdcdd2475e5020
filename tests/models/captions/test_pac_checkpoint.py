"""Checkpoints as PAC-S releases them: OpenAI's names beside whatever the training script kept."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterfoil.benchmarks.decoding import Sampling
from counterfoil.benchmarks.records import Caption, FileSource, Image
from counterfoil.benchmarks.videos import Video
from counterfoil.errors import ModelError
from counterfoil.models import open_clip
from counterfoil.models.base import Options, digest_tensors
from counterfoil.models.captions import embedding
from counterfoil.models.checkpoint_files import read_checkpoint

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("tiny_architectures")]

CPU = Options(device="cpu")


def released(state: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The layout of clip_ViT-B-32.pth, with what scripts of this kind keep beside the weights."""
    import torch

    # OpenAI's archives carry these three beside the weights.
    sizes = {name: torch.tensor(n) for name, n in (("input_resolution", 224), ("context_length", 77))}
    return {
        "epoch": 4,
        "state_dict": {prefix + name: tensor for name, tensor in {**state, **sizes}.items()},
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 1e-4}]},
        "scaler": {"scale": 65536.0},
        "best_acc1": np.float64(61.5),
        "args": argparse.Namespace(lr=1e-4, batch_size=256),
    }


def test_every_bit_comes_back(tiny_model: Callable[[str], Any], tmp_path: Path) -> None:
    import torch

    model, path = tiny_model("tiny-quickgelu"), tmp_path / "clip_ViT-tiny.pth"
    torch.save(released(model.state_dict(), "module."), path)
    found = read_checkpoint(path)
    assert found.notes["epoch"] == 4
    scorer = open_clip.load(f"tiny-quickgelu/{path}", CPU)
    assert scorer.identity.weights == digest_tensors(model.state_dict())
    torch.save(model.state_dict(), tmp_path / "plain.pt")
    plain = open_clip.load(f"tiny-quickgelu/{tmp_path / 'plain.pt'}", CPU)
    captions = [[Caption("0", "A photo depicts a cat")]]
    np.testing.assert_array_equal(next(scorer.embed_captions(captions)), next(plain.embed_captions(captions)))


def test_the_wrong_model_is_refused_in_a_line(tiny_model: Callable[[str], Any], tmp_path: Path) -> None:
    import torch

    path = tmp_path / "clip_ViT-tiny.pth"
    torch.save(released(tiny_model("tiny-quickgelu").state_dict()), path)
    # Nothing in a released file says which activation it needs, so the name must.
    with pytest.raises(ModelError, match=r"nothing in this file says.*use open-clip:tiny-quickgelu/"):
        open_clip.load(f"tiny/{path}", CPU)
    with pytest.raises(ModelError, match="not a checkpoint of ViT-B-32-quickgelu; given: "):
        open_clip.load(f"ViT-B-32-quickgelu/{path}", CPU)


def test_the_one_release_that_is_not_openais(tiny_model: Callable[[str], Any], tmp_path: Path) -> None:
    import torch

    path = tmp_path / "openClip_ViT-tiny.pth"
    torch.save(released(tiny_model("tiny").state_dict()), path)
    assert open_clip.load(f"tiny-gelu/{path}", CPU).identity.options["activation"] == "gelu"


# -- at its real size -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vit_b_32(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """ViT-B/32 with random weights, saved as PAC-S's checkpoint is."""
    import open_clip as library
    import torch

    torch.manual_seed(0)
    model = library.create_model("ViT-B-32-quickgelu").eval()
    path = tmp_path_factory.mktemp("pac") / "clip_ViT-B-32.pth"
    torch.save(released(model.state_dict()), path)
    return model, path


@pytest.mark.slow
def test_a_real_vit_b_32_comes_back_and_scores_the_clipscore_example(
    vit_b_32: tuple[Any, Path], shared_data: Path
) -> None:
    import json

    import open_clip as library
    import torch

    model, path = vit_b_32
    spec = f"ViT-B-32-quickgelu/{path}"
    scorer = open_clip.load(spec, CPU)
    assert scorer.identity.weights == digest_tensors(model.state_dict())
    folder = shared_data / "clipscore_example"
    texts = json.loads((folder / "good_captions.json").read_text())
    references = json.loads((folder / "refs.json").read_text())
    names = sorted(texts)
    images = [Image(name, FileSource(folder / "images" / f"{name}.jpg")) for name in names]

    # As pac_score.py and clipscore.py compute it.
    transform = library.transform.image_transform((224, 224), is_train=False)
    tokenize = library.get_tokenizer("ViT-B-32-quickgelu")
    with torch.inference_mode():
        shown = model.encode_image(torch.stack([transform(image.decode()) for image in images])).numpy()
        said = model.encode_text(tokenize([f"A photo depicts {texts[n]}" for n in names])).numpy()
        flat = model.encode_text(tokenize([f"A photo depicts {r}" for n in names for r in references[n]]))
    shown, said, flat = (
        each / np.sqrt(np.sum(each**2, axis=1, keepdims=True)) for each in (shown, said, flat.numpy())
    )
    own = 2.0 * np.clip(np.sum(shown * said, axis=1), 0, None)
    best = np.array([max(said[i] @ flat[3 * i : 3 * i + 3].T) for i in range(2)])
    expected = 2 * own * best / (own + best)

    metric = embedding.load(
        "ref-pac-s",
        Options(device="cpu", backbone=f"open-clip:{spec}"),
        lambda options: open_clip.load(spec, options),
    )
    candidates = next(metric.embedder.embed_captions([[Caption(n, texts[n]) for n in names]]))
    others = next(metric.embedder.embed_captions([[Caption(n, r) for n in names for r in references[n]]]))
    found = metric.of_embeddings(
        candidates, next(metric.embedder.embed_images([images])), others, np.array([0, 3, 6])
    )
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.slow
def test_the_real_clip_through_em_score(vit_b_32: tuple[Any, Path], shared_data: Path) -> None:
    pytest.importorskip("av")
    _, path = vit_b_32
    spec = f"ViT-B-32-quickgelu/{path}"
    (file,) = (shared_data / "video").glob("*.mp4")
    video = Video(file.stem, FileSource(file), sampling=Sampling(count=10))
    metric = embedding.load(
        "ref-em-score",
        Options(device="cpu", backbone=f"open-clip:{spec}"),
        lambda options: open_clip.load(spec, options),
    )
    texts = (
        "A person is frying a pan of eggs that are colored pink and green.",
        "Two egg yolks are placed in food flavored white yolk on a pan until they are cooked.",
    )
    (candidate, reference) = next(metric.local.embed_tokens([[Caption(t, t) for t in texts]]))
    ((frames,),) = metric.local.embed_frames([[video]])
    assert frames.shape == (10, 512)
    np.testing.assert_allclose(np.linalg.norm(frames, axis=1), 1, atol=1e-5)
    stills = [Image(str(n), None) for n in range(10)]
    pictures = list(video.frames())
    assert len(pictures) == len(stills)
    # Frame by frame as single pictures.
    one_by_one = [metric.local.unit_images([metric.local.preparation(each)])[0] for each in pictures]
    np.testing.assert_allclose(frames, np.stack(one_by_one), atol=1e-5)
    found = metric.of_parts([candidate], [frames], [[reference]])
    assert np.isfinite(found).all()
    assert -1 <= found[0] <= 1
    # A caption is its own best reference.
    same = metric.of_parts([candidate], [frames], [[candidate]])
    assert same[0] > found[0]
