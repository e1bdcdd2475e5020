"""Cross-encoders of transformers: equal to the library's own calls for one pair, image towers run once."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_matchers
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import InputError, ModelError, UnknownNameError
from counterfoil.models import itm
from counterfoil.models.base import Options, PairScorer
from made_once import made_once

pytestmark = pytest.mark.models

CASES = [
    ("blip", "itm"),
    ("blip", "retrieval"),
    ("blip", "itc"),
    ("blip-2", "itm"),
    ("blip-2", "itc"),
    ("vilt", "itm"),
    ("flava", "itm"),
    ("flava", "contrastive"),
    ("bridgetower", "itm"),
]
TEXTS = [
    "a cat",
    "two birds sit on a wire",
    "the red dog",
    "a photo of a cat on the mat in a house by the sea",
]


@pytest.fixture(scope="session")
def matchers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model of each family."""
    pytest.importorskip("transformers")

    def make(folder: Path) -> None:
        for name in tiny_matchers.NAMES:
            tiny_matchers.save(name, folder / name)

    return made_once(tmp_path_factory, "tiny-matchers", make)


def loaded(folder: Path, protocol: str = "", **options: Any) -> Any:
    settings = {"settings": {"protocol": protocol}} if protocol else {}
    return itm.load(str(folder), Options(device="cpu", **settings, **options))


def by_the_library(folder: Path, name: str, protocol: str, pairs: list[tuple[Image, str]]) -> list[float]:
    """Each pair's score as the model's documentation computes it, one pair at a time."""
    import torch
    import transformers
    from transformers import AutoImageProcessor, AutoTokenizer

    parts = AutoImageProcessor.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    kind = itm.FAMILIES[name].kind
    model = getattr(transformers, kind).from_pretrained(folder).eval()

    def blip(image: Any, text: str) -> Any:
        inputs = transformers.BlipProcessor(*parts)(images=image, text=text, return_tensors="pt")
        if protocol == "itm":
            return model(**inputs).itm_score.softmax(-1)[0, 1]
        if protocol == "itc":
            return model(**inputs, use_itm_head=False).itm_score[0, 0]
        # As model_zoo/blip_models.py of ARO: 35 tokens, padded in full, [ENC] first.
        tokens = parts[1](text, padding="max_length", truncation=True, max_length=35, return_tensors="pt")
        seen = {"pixel_values": inputs["pixel_values"], "attention_mask": tokens["attention_mask"]}
        cosine = model(input_ids=tokens["input_ids"], **seen, use_itm_head=False).itm_score[0, 0]
        tokens["input_ids"][:, 0] = model.config.text_config.vocab_size - 1
        return model(input_ids=tokens["input_ids"], **seen).itm_score[0, 1] + cosine

    def blip_2(image: Any, text: str) -> Any:
        processor = transformers.Blip2Processor(*parts, num_query_tokens=4)
        inputs = processor(images=image, text=text, return_tensors="pt")
        found = model(**inputs, use_image_text_matching_head=protocol == "itm").logits_per_image
        return found.softmax(-1)[0, 1] if protocol == "itm" else found[0, 0]

    def vilt(image: Any, text: str) -> Any:
        return model(**transformers.ViltProcessor(*parts)(image, text, return_tensors="pt")).logits[0, 0]

    def flava(image: Any, text: str) -> Any:
        inputs = transformers.FlavaProcessor(*parts)(
            images=image, text=text, return_tensors="pt", padding="max_length", max_length=77
        )
        found = model(
            **inputs,
            input_ids_masked=inputs["input_ids"],
            bool_masked_pos=torch.zeros(1, 16, dtype=torch.bool),
            skip_unmasked_multimodal_encoder=False,
            return_loss=False,
        )
        if protocol == "itm":
            return found.itm_logits.softmax(-1)[0, 1]
        return found.contrastive_logits_per_image[0, 0] / model.flava.logit_scale.exp()

    def bridgetower(image: Any, text: str) -> Any:
        inputs = transformers.BridgeTowerProcessor(*parts)(image, text, return_tensors="pt")
        return model(**inputs).logits.softmax(-1)[0, 1]

    call = {"blip": blip, "blip-2": blip_2, "vilt": vilt, "flava": flava, "bridgetower": bridgetower}[name]
    with torch.inference_mode():
        return [float(call(image.decode(), text)) for image, text in pairs]


def listed(images: list[Image], texts: list[str] = TEXTS) -> list[tuple[Image, Caption]]:
    """Every caption of every image, those of an image one after another."""
    return [(image, Caption(text, text)) for image in images for text in texts]


def scored(scorer: Any, pairs: list[tuple[Image, Caption]], size: int = 64, workers: int = 0) -> np.ndarray:
    batches = [pairs[at : at + size] for at in range(0, len(pairs), size)]
    return np.concatenate(list(scorer.score_pairs(batches, workers=workers)))


@pytest.mark.parametrize(("name", "protocol"), CASES)
def test_scores_equal_the_librarys_one_pair_at_a_time(
    name: str, protocol: str, matchers: Path, drawn_images: list[Image]
) -> None:
    scorer = loaded(matchers / name, protocol)
    assert isinstance(scorer, PairScorer)
    pairs = listed(drawn_images[:3])
    expected = by_the_library(matchers / name, name, protocol, [(i, c.text or "") for i, c in pairs])
    found = scored(scorer, pairs)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
    # Neither the image nor the caption is left out.
    square = found.reshape(3, -1)
    assert np.ptp(square, axis=0).max() > 1e-3
    assert np.ptp(square, axis=1).max() > 1e-3
    # Nor do batches change anything: images have other numbers of captions, one far longer than the others.
    pairs = [
        (image, Caption(text, text))
        for count, image in zip((4, 1, 3), drawn_images, strict=False)
        for text in [*TEXTS, "a " * 25][-count:]
    ]
    one = scored(scorer, pairs, 1)
    np.testing.assert_allclose(scored(scorer, pairs, 64), one, rtol=0, atol=1e-5)
    order = np.random.default_rng(0).permutation(len(pairs))
    np.testing.assert_allclose(scored(scorer, [pairs[at] for at in order], 5), one[order], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["blip", "blip-2"])
def test_the_image_tower_runs_once_per_image(
    name: str, matchers: Path, drawn_images: list[Image], monkeypatch: pytest.MonkeyPatch
) -> None:
    scorer = loaded(matchers / name)
    seen: list[int] = []
    tower = scorer.matcher.model.vision_model
    forward = tower.forward

    def counted(pixel_values: Any, **options: Any) -> Any:
        seen.append(len(pixel_values))
        return forward(pixel_values=pixel_values, **options)

    monkeypatch.setattr(tower, "forward", counted)
    # Twelve pairs in batches of five, which cut the captions of two images in two.
    scored(scorer, listed(drawn_images[:3]), 5)
    assert sum(seen) == 3


# -- bad input --------------------------------------------------------------------------------------------


def refused(argument: object, pattern: str, kind: type = ModelError, **options: Any) -> None:
    with pytest.raises(kind, match=pattern) as error:
        itm.load(str(argument), Options(device="cpu", **options))
    assert "\n" not in str(error.value)


@pytest.fixture
def blip(matchers: Path, tmp_path: Path) -> Path:
    """A copy of a tiny BLIP that may be damaged."""
    return Path(shutil.copytree(matchers / "blip", tmp_path / "model"))


def test_models_without_a_matching_head(clip_folder: Path, blip: Path) -> None:
    refused(clip_folder, "not a model of image-text matching; given: model type clip; allowed: BLIP.*hf:")
    import transformers

    model = transformers.BlipForConditionalGeneration(transformers.BlipConfig.from_pretrained(blip))
    model.save_pretrained(blip)
    refused(blip, "the checkpoint does not fill the model.*missing")


def test_unknown_protocols_and_lengths(matchers: Path) -> None:
    refused(
        matchers / "blip",
        "unknown protocol; given: retrival; allowed: itc, itm, retrieval; did you mean 'retrieval'",
        UnknownNameError,
        settings={"protocol": "retrival"},
    )
    refused(matchers / "vilt", "unknown protocol; given: itc", UnknownNameError, settings={"protocol": "itc"})
    refused(matchers / "vilt", "3 to 40 tokens", InputError, settings={"length": "41"})
    assert loaded(matchers / "blip", "retrieval").identity.options["length"] == 35


def test_missing_files(blip: Path) -> None:
    (blip / "preprocessor_config.json").unlink()
    refused(blip, "its image processor cannot be loaded")
    for name in ("vocab.txt", "tokenizer.json", "tokenizer_config.json"):
        (blip / name).unlink()
    refused(blip, "its (tokenizer|image processor) (knows no words|cannot be loaded)")


def test_the_retrieval_protocol_needs_an_encoder_token(blip: Path) -> None:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(blip)
    tokenizer.add_tokens(["[DEC]"])
    tokenizer.save_pretrained(blip)
    refused(blip, r"no encoder token \[ENC\]", settings={"protocol": "retrieval"})
    tokenizer.add_tokens(["[ENC]"])
    tokenizer.save_pretrained(blip)
    assert loaded(blip, "retrieval").matcher.encoder_token() == len(tokenizer) - 1
