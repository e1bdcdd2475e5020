"""The likelihood of captions by models that write them: equal to plain forwards, one pair at a time."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_generative
from counterfoil.benchmarks.records import Caption, Image, PixelSource
from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.models.base import Options
from counterfoil.models.generative import answers, likelihood, prefixes
from counterfoil.models.generative.writing import load_writer
from made_once import made_once
from tiny_families import write_random_checkpoint

pytestmark = [
    pytest.mark.models,
    # PaliGemma's processor, called as documented.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]

TEXTS = ("a red cat on the mat", "two dogs", "a man and a woman behind the blue house left of a dog", "a")
INSTRUCTION = "Describe this image in one sentence."


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("transformers")

    def make(folder: Path) -> None:
        for name in ("qwen2-vl", "idefics3", "paligemma", "blip", "git", "vision-encoder-decoder"):
            tiny_generative.save(name, folder / name)
        tiny_generative.save_coca(folder / "coca")

    return made_once(tmp_path_factory, "writers", make)


def loaded(name: str, models: Path, **settings: str) -> Any:
    where = f"open-clip:local-dir:{models / name}" if name == "coca" else str(models / name)
    return likelihood.load(where, Options(device="cpu", settings=settings))


def pictures() -> list[Image]:
    rng = np.random.default_rng(3)
    shapes = ((32, 32), (24, 56), (64, 28))
    return [
        Image(str(number), PixelSource(rng.integers(0, 256, (*shape, 3)).astype(np.uint8)))
        for number, shape in enumerate(shapes)
    ]


def pairs_of(images: list[Image]) -> list[tuple[Image, Caption]]:
    """All texts with the first pictures, and one with the last."""
    every = [(image, Caption(text, text)) for image in images[:-1] for text in TEXTS]
    return [*every, (images[-1], Caption("", TEXTS[2]))]


def scored(scorer: Any, pairs: list[tuple[Image, Caption]], size: int) -> np.ndarray:
    return np.concatenate(
        list(scorer.score_pairs([pairs[at : at + size] for at in range(0, len(pairs), size)]))
    )


def by_the_library(name: str, models: Path) -> Callable[[Any, str], list[float]]:
    """The log-probabilities of a caption's tokens and its end, by the model's own documented call."""
    import torch
    import transformers

    if name == "coca":
        return by_open_clip(models / name)
    if name == "vision-encoder-decoder":
        return by_labels(models / name)
    model = transformers.AutoModelForImageTextToText.from_pretrained(models / name).eval()
    processor = transformers.AutoProcessor.from_pretrained(models / name)
    tokenizer = processor.tokenizer

    def logs(logits: Any, labels: Any) -> list[float]:
        found = logits.float().log_softmax(-1)
        return [float(found[at, each]) for at, each in enumerate(labels)]

    def score(picture: Any, text: str) -> list[float]:
        if name in ("blip", "git"):
            inputs = processor(images=picture, text=text, return_tensors="pt")
            inputs.pop("token_type_ids", None)
            ids = inputs["input_ids"]
            if name == "blip":
                # As `generate` does and BLIP was trained: its own begin mark in place of [CLS].
                ids[0, 0] = model.config.text_config.bos_token_id
            with torch.inference_mode():
                logits = model(**inputs).logits[0]
            return logs(logits[-ids.shape[1] : -1], ids[0, 1:].tolist())
        if name == "paligemma":
            inputs = processor(text="<image>caption en", suffix=text, images=picture, return_tensors="pt")
            labels = inputs.pop("labels")[0]
            with torch.inference_mode():
                logits = model(**inputs).logits[0]
            first = int((labels != -100).nonzero()[0])
            return logs(logits[first - 1 : -1], labels[first:].tolist())
        turns = [
            {
                "role": "user",
                "content": [{"type": "image", "image": picture}, {"type": "text", "text": INSTRUCTION}],
            }
        ]
        options = {"tokenize": True, "return_dict": True, "return_tensors": "pt"}
        asked = processor.apply_chat_template(turns, add_generation_prompt=True, **options)
        told = processor.apply_chat_template(
            [*turns, {"role": "assistant", "content": [{"type": "text", "text": text}]}], **options
        )
        start, ids = asked["input_ids"].shape[1], told["input_ids"][0].tolist()
        end = tokenizer.convert_tokens_to_ids("<|im_end|>" if name == "qwen2-vl" else "<end_of_utterance>")
        stop = len(ids) - 1 - ids[::-1].index(end)
        with torch.inference_mode():
            logits = model(**told).logits[0]
        return logs(logits[start - 1 : stop], ids[start : stop + 1])

    return score


def by_labels(folder: Path) -> Callable[[Any, str], list[float]]:
    """The logits of a call with labels, which the model shifts behind its begin mark by itself."""
    import torch
    import transformers

    model = transformers.VisionEncoderDecoderModel.from_pretrained(folder).eval()
    images = transformers.AutoImageProcessor.from_pretrained(folder)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)

    def score(picture: Any, text: str) -> list[float]:
        labels = torch.tensor([[*tokenizer(text)["input_ids"], tokenizer.eos_token_id]])
        pixels = images(picture, return_tensors="pt").pixel_values
        with torch.inference_mode():
            logs = model(pixel_values=pixels, labels=labels).logits[0].float().log_softmax(-1)
        return [float(logs[at, each]) for at, each in enumerate(labels[0].tolist())]

    return score


def by_open_clip(folder: Path) -> Callable[[Any, str], list[float]]:
    """The logits and labels of `CoCa.forward`, whose texts are padded in full."""
    import open_clip
    import torch

    model, _, transform = open_clip.create_model_and_transforms(f"local-dir:{folder}")
    tokenizer = open_clip.get_tokenizer(f"local-dir:{folder}")
    model.eval()

    def score(picture: Any, text: str) -> list[float]:
        with torch.inference_mode():
            output = model(transform(picture)[None], tokenizer([text]))
        logs, labels = output["logits"][0].float().log_softmax(-1), output["labels"][0].tolist()
        last = labels.index(tokenizer.eot_token_id)
        return [float(logs[at, labels[at]]) for at in range(last + 1)]

    return score


@pytest.mark.parametrize(
    "name", ["qwen2-vl", "idefics3", "paligemma", "blip", "git", "vision-encoder-decoder", "coca"]
)
def test_equal_to_one_pair_at_a_time(name: str, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = loaded(name, models)
    pairs = pairs_of(pictures())
    plain = by_the_library(name, models)
    parts = [plain(image.decode(), caption.text or "") for image, caption in pairs]
    expected = np.array([sum(part) for part in parts])
    for size in (1, 3, 32):
        np.testing.assert_allclose(scored(scorer, pairs, size), expected, rtol=5e-7, atol=2e-5)
    # Few positions at a time, so that texts of one picture go through the model in several parts.
    monkeypatch.setitem(prefixes.POSITIONS, "cpu", 24)
    np.testing.assert_allclose(scored(scorer, pairs, 32), expected, rtol=5e-7, atol=2e-5)
    # Pictures matter, so the comparison can fail.
    assert np.median(np.abs(expected[:4] - expected[4:8])) > 2e-4
    if name in ("idefics3", "blip"):
        bare = loaded(name, models, length="mean", end="out")
        means = [float(np.mean(part[:-1])) for part in parts]
        np.testing.assert_allclose(scored(bare, pairs, 5), means, rtol=1e-5, atol=1e-5)


def test_the_whole_prompt_is_shared(models: Path) -> None:
    """PaliGemma's as well: it attends to itself both ways, and no caption is a part of it."""
    for name in ("qwen2-vl", "paligemma"):
        scorer = loaded(name, models)
        (row,) = scorer.rows("a cat")
        assert scorer.decoder.shares
        assert row.ids[: row.prompt] == scorer.decoder.read


def test_the_unconditional_term(models: Path, text_models: Path) -> None:
    plain, pairs = loaded("blip", models), pairs_of(pictures())
    conditional = scored(plain, pairs, 4)
    # A grey picture.
    grey = Image("grey", PixelSource(np.full((224, 224, 3), 128, np.uint8)))
    of_grey = scored(plain, [(grey, Caption(text, text)) for text in TEXTS], 4)
    alone = dict(zip(TEXTS, of_grey, strict=True))
    prior = np.array([alone[caption.text or ""] for _, caption in pairs])
    blank = loaded("blip", models, unconditional="blank", alpha="0.5")
    np.testing.assert_allclose(scored(blank, pairs, 3), conditional - 0.5 * prior, rtol=1e-5, atol=1e-5)
    # The mean probability over two pictures of noise.
    rng = np.random.default_rng(0)
    noisy = [
        Image(str(n), PixelSource(np.clip(rng.normal(128, 64, (224, 224, 3)), 0, 255).astype(np.uint8)))
        for n in range(2)
    ]
    each = scored(plain, [(image, Caption(t, t)) for image in noisy for t in TEXTS], 4).reshape(2, 4)
    mean = dict(zip(TEXTS, np.log(np.exp(each).mean(axis=0)), strict=True))
    noise = loaded("blip", models, unconditional="noise", noises="2")
    expected = conditional - [mean[caption.text or ""] for _, caption in pairs]
    np.testing.assert_allclose(scored(noise, pairs, 3), expected, rtol=1e-4, atol=1e-4)
    # A language model of its own.
    from counterfoil.models.text_models import load_lm

    lm = load_lm(str(text_models / "gpt2"), Options(device="cpu", settings={"end": "in"}))
    (values,) = lm.score_pairs([pairs])
    by_lm = loaded("blip", models, unconditional="lm", lm=str(text_models / "gpt2"))
    np.testing.assert_allclose(scored(by_lm, pairs, 3), conditional - values, rtol=1e-5, atol=1e-5)
    keys = {each.identity.key for each in (plain, blank, noise, by_lm)}
    assert len(keys) == 4


def test_words_predicted_from_the_picture_alone(models: Path) -> None:
    """Hidden words: what is predicted at a place does not depend on the words before it."""
    image = pictures()[0]
    captions = [Caption(text, text) for text in ("a red cat", "a blue cat")]
    hidden, plain = loaded("blip", models, prediction="parallel"), loaded("blip", models)
    rows = [hidden.rows(caption.text)[0] for caption in captions]
    assert rows[0].ids == rows[1].ids
    assert [row.wanted.size for row in rows] == [4, 4]
    pairs = [(image, caption) for caption in captions]
    assert (scored(hidden, pairs, 2) != scored(plain, pairs, 2)).all()


@pytest.mark.parametrize("kind", ["blip-2", "instructblip", "florence2"])
def test_families_that_neither_answer_nor_write_are_refused_so(tmp_path: Path, kind: str) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"model_type": kind}))
    for load in (likelihood.load, answers.load, load_writer):
        with pytest.raises(ModelError, match=rf"nor write captions here; given: model type {kind}"):
            load(str(tmp_path), Options(device="cpu"))


def test_settings_and_models_that_do_not_fit_are_refused(models: Path, tmp_path: Path) -> None:
    for settings, error, message in (
        ({"length": "median"}, InputError, "no such length"),
        ({"alpha": "0.5"}, InputError, "alpha is of the unconditional term, and there is none"),
        ({"unconditional": "lm"}, InputError, "by a language model needs its name"),
        ({"unconditional": "blank", "lm": "gpt2"}, InputError, "by a language model needs its name"),
        ({"unconditional": "blank", "alpha": "nan"}, InputError, "no value of alpha"),
    ):
        with pytest.raises(error, match=message):
            loaded("git", models, **settings)
    with pytest.raises(InputError, match="a chat model predicts word after word"):
        loaded("qwen2-vl", models, prediction="parallel")
    with pytest.raises(InputError, match="no token that hides a word"):
        loaded("coca", models, prediction="parallel")
    write_random_checkpoint(tmp_path / "clip")
    with pytest.raises(ModelError, match="the model writes no captions"):
        likelihood.load(f"open-clip:local-dir:{tmp_path / 'clip'}", Options(device="cpu"))
    bare = tmp_path / "bare"
    shutil.copytree(models / "idefics3", bare)
    (bare / "chat_template.jinja").unlink()
    with pytest.raises(ModelError, match="the model has no chat template"):
        likelihood.load(str(bare), Options(device="cpu"))
    with pytest.raises(DataError, match="an empty caption has no likelihood"):
        scored(loaded("git", models, end="out"), [(pictures()[0], Caption("", ""))], 1)
