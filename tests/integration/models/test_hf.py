"""Dual encoders of transformers: equal to the library's own calls, cut only where that is exact."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.models import hf
from counterfoil.models.base import Embedder, Options
from tiny_families import family, save_words

pytestmark = pytest.mark.models

CPU = Options(device="cpu")


def embedded(scorer, items, size=4, workers=0, kind="captions"):
    batches = [items[at : at + size] for at in range(0, len(items), size)]
    if kind == "captions":
        return np.concatenate(list(scorer.embed_captions(batches)))
    return np.concatenate(list(scorer.embed_images(batches, workers=workers)))


def by_the_library(folder, images, texts, **text_options):
    """What transformers gives when called as its documentation shows, L2-normalised."""
    import torch
    from transformers import AutoModel, AutoProcessor

    model, processor = AutoModel.from_pretrained(folder).eval(), AutoProcessor.from_pretrained(folder)
    with torch.inference_mode():
        pixels = processor(images=[image.decode() for image in images], return_tensors="pt")
        tokens = processor(text=texts, return_tensors="pt", truncation=True, **text_options)
        found = model.get_image_features(**pixels), model.get_text_features(**tokens)
    tensors = [each if isinstance(each, torch.Tensor) else each.pooler_output for each in found]
    return [torch.nn.functional.normalize(each, dim=-1).numpy() for each in tensors]


def test_clip_equals_the_library_at_full_length(clip_folder, drawn_images, captions):
    scorer = hf.load(str(clip_folder), CPU)
    assert isinstance(scorer, Embedder)
    assert scorer.provenance["text tower"] == "cut to the longest caption"
    texts = [caption.text for caption in captions]
    images, full = by_the_library(clip_folder, drawn_images, texts, padding="max_length", max_length=77)
    assert abs(embedded(scorer, captions) - full).max() <= 1e-5
    assert abs(embedded(scorer, drawn_images, kind="images") - images).max() <= 1e-5


def test_siglip_is_padded_to_full_length(siglip_folder, drawn_images, captions):
    scorer = hf.load(str(siglip_folder), CPU)
    assert scorer.provenance["text tower"] == "padded to 64 tokens"
    assert set(scorer.lengths(captions)) == {64}
    texts = [caption.text for caption in captions]
    images, full = by_the_library(siglip_folder, drawn_images, texts, padding="max_length", max_length=64)
    assert abs(embedded(scorer, captions) - full).max() <= 1e-5
    assert abs(embedded(scorer, drawn_images, kind="images") - images).max() <= 1e-5
    # Padding to the longest would have given other numbers, so this test can tell.
    _, cut = by_the_library(siglip_folder, drawn_images[:1], texts[:3], padding="longest")
    assert abs(cut - full[:3]).max() > 1e-3


def test_siglip_reads_lower_case(siglip_folder):
    scorer = hf.load(str(siglip_folder), CPU)
    low, high = embedded(scorer, [Caption("a", "a red cat"), Caption("b", "A Red CAT")])
    assert low.tolist() == high.tolist()


@pytest.mark.parametrize("name", ["siglip2", "align", "altclip"])
def test_other_families_are_padded_to_full_length(name, tmp_path, drawn_images):
    import torch
    from transformers import AutoTokenizer

    torch.manual_seed(0)
    model, processor, length = family(name)
    model.eval().save_pretrained(tmp_path)
    processor.save_pretrained(tmp_path)
    save_words(tmp_path)
    scorer = hf.load(str(tmp_path), CPU)
    texts = ["a red cat on the mat", "the dog"]
    with torch.inference_mode():
        tokens = AutoTokenizer.from_pretrained(tmp_path)(
            texts, padding="max_length", max_length=length, return_tensors="pt"
        )
        pixels = processor(images=[image.decode() for image in drawn_images], return_tensors="pt")
        found = model.get_text_features(**tokens), model.get_image_features(**pixels)
    expected = [torch.nn.functional.normalize(each.pooler_output, dim=-1).numpy() for each in found]
    captions = [Caption(text, text) for text in texts]
    assert scorer.lengths(captions) == [length, length]
    assert abs(embedded(scorer, captions) - expected[0]).max() <= 1e-5
    assert abs(embedded(scorer, drawn_images, 3, kind="images") - expected[1]).max() <= 1e-5


def test_lengths_are_tokens_with_both_marks(clip_folder):
    scorer = hf.load(str(clip_folder), Options(device="cpu", prompt="a photo of {}"))
    # begin, "a", "photo", "of", "cats", end; 120 words are cut at 77.
    assert scorer.lengths([Caption("a", "cats"), Caption("b", "dog " * 120)]) == [6, 77]
    assert scorer.lengths([]) == []


# -- bad input --------------------------------------------------------------------------------------------


def refused(argument, pattern, options=CPU, kind=ModelError):
    with pytest.raises(kind, match=pattern) as error:
        hf.load(str(argument), options)
    assert "\n" not in str(error.value)


def copied(folder, to):
    shutil.copytree(folder, to)
    return to


def edited(**values):
    return lambda data: json.dumps(json.loads(data) | values).encode()


NOT_FINITE = r"config.json: .*not a finite number; given: (NaN|Infinity)"
NO_SIZE = r"its image processor cannot (prepare a picture|be loaded)"
TOKENIZER = "vocab.json merges.txt tokenizer_config.json"
PROCESSOR = "preprocessor_config.json"


@pytest.mark.parametrize(
    ("names", "edit", "pattern", "kind"),
    [
        ("config.json", None, r"no config.json.*given: .*model.safetensors.*open-clip:ARCH/FILE", ModelError),
        (TOKENIZER, None, "its tokenizer (knows no words|cannot be loaded)", ModelError),
        ("model.safetensors", lambda data: data[: len(data) // 2], "its model cannot be loaded", ModelError),
        ("config.json", edited(logit_scale_init_value=float("nan")), NOT_FINITE, DataError),
        (PROCESSOR, edited(crop_size={"height": float("nan"), "width": 32}), NOT_FINITE, DataError),
        (PROCESSOR, edited(image_mean=[0.5, float("inf"), 0.5]), NOT_FINITE, DataError),
        (PROCESSOR, edited(crop_size={"height": None, "width": 32}), NO_SIZE, ModelError),
        (PROCESSOR, edited(crop_size={"height": "wide", "width": 32}), NO_SIZE, ModelError),
    ],
)
def test_damaged_folders(names, edit, pattern, kind, clip_folder, tmp_path):
    folder = copied(clip_folder, tmp_path / "model")
    for file in map(folder.joinpath, names.split()):
        file.unlink() if edit is None else file.write_bytes(edit(file.read_bytes()))
    refused(folder, pattern, kind=kind)


def test_model_without_both_features(tmp_path):
    from transformers import BertConfig, BertModel

    config = BertConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, vocab_size=9
    )
    BertModel(config).save_pretrained(tmp_path)
    refused(tmp_path, r"no image and text features; given: BertModel \(model type bert\)")


class Bomb:
    """An object whose unpickling writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.write_text, (self.path, "executed"))


def test_pickled_code_is_not_run(clip_folder, tmp_path):
    import torch

    folder = copied(clip_folder, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    torch.save({"visual_projection.weight": Bomb(tmp_path / "mark")}, folder / "pytorch_model.bin")
    refused(folder, "running code from them, and that is not done; save them as safetensors")
    assert not (tmp_path / "mark").exists()


def test_code_beside_the_checkpoint_is_not_run(clip_folder, tmp_path):
    folder = copied(clip_folder, tmp_path / "model")
    config = json.loads((folder / "config.json").read_text())
    config |= {
        "model_type": "my_own",
        "auto_map": {"AutoConfig": "mine.MyConfig", "AutoModel": "mine.MyModel"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()")
    refused(folder, "brings code of its own, which is not run")
    assert not (tmp_path / "mark").exists()


def test_options_that_make_no_sense(clip_folder):
    refused(
        clip_folder, "needs one {} for the caption; given: a photo", Options(prompt="a photo"), InputError
    )
    refused(clip_folder, "unknown precision; given: int4", Options(precision="int4"), InputError)
    refused(clip_folder, "fp16 needs a GPU", Options(device="cpu", precision="fp16"), InputError)
    refused(clip_folder, "no such device here; given: tpu", Options(device="tpu"))
    refused("nobody/no-such-model-here", "its model is not here and cannot be downloaded; load it once")
    refused(clip_folder, "no use for the option 'column'", Options(column="x"), InputError)
