"""Dual encoders of transformers: equal to the library's own calls, cut only where that is exact."""

import json
import shutil

import pytest
import torch
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer, BertConfig, BertModel

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.models import hf
from counterfoil.models.base import Embedder, Options
from embedded import Bomb, embedded
from refusals import refuses
from tiny_families import save_family

CPU = Options(device="cpu")


def by_the_library(folder, images, texts, **padding):
    """What transformers gives when called as its documentation shows, L2-normalised."""
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    with torch.inference_mode():
        pictures = [image.decode() for image in images]
        pixels = AutoImageProcessor.from_pretrained(folder)(images=pictures, return_tensors="pt")
        tokens = tokenizer(texts, return_tensors="pt", truncation=True, **padding)
        features = model.get_image_features(**pixels), model.get_text_features(**tokens)
    tensors = [item if isinstance(item, torch.Tensor) else item.pooler_output for item in features]
    return [torch.nn.functional.normalize(item, dim=-1).numpy() for item in tensors]


def folder_of(name, request):
    if name in ("clip", "siglip"):
        return request.getfixturevalue(f"{name}_folder")
    return save_family(name, request.getfixturevalue("tmp_path"))


@pytest.mark.parametrize("name", ["clip", "siglip", "siglip2", "align", "altclip"])
def test_equals_the_library_at_full_length(name, request, drawn_images, captions):
    folder, length = folder_of(name, request), 77 if name == "clip" else 64
    if name not in ("clip", "siglip"):
        captions = [Caption(text, text) for text in ("a red cat on the mat", "the dog")]
    model = hf.load(str(folder), CPU)
    assert isinstance(model, Embedder)
    padded = f"padded to {length} tokens"
    assert model.provenance["text tower"] == ("cut to the longest caption" if name == "clip" else padded)
    assert name == "clip" or set(model.lengths(captions)) == {length}
    texts = [caption.text for caption in captions]
    images, full = by_the_library(folder, drawn_images, texts, padding="max_length", max_length=length)
    assert abs(embedded(model, captions) - full).max() <= 1e-5
    assert abs(embedded(model, drawn_images, 3, kind="images") - images).max() <= 1e-5
    if name == "siglip":
        # Padding to the longest would have given other numbers, so this test can tell.
        _, cut = by_the_library(folder, drawn_images[:1], texts[:3], padding="longest")
        assert abs(cut - full[:3]).max() > 1e-3
        # It reads lower case.
        low, high = embedded(model, [Caption("a", "a red cat"), Caption("b", "A Red CAT")])
        assert low.tolist() == high.tolist()


def refused(argument, pattern, options=CPU, kind=ModelError):
    refuses(pattern, hf.load, str(argument), options, error=kind)


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
    folder = shutil.copytree(clip_folder, tmp_path / "model")
    for file in map(folder.joinpath, names.split()):
        file.unlink() if edit is None else file.write_bytes(edit(file.read_bytes()))
    refused(folder, pattern, kind=kind)


def test_model_without_both_features(tmp_path):
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8, "vocab_size": 9}
    config = BertConfig(hidden_size=8, **sizes)
    BertModel(config).save_pretrained(tmp_path)
    refused(tmp_path, r"no image and text features; given: BertModel \(model type bert\)")


def test_pickled_code_is_not_run(clip_folder, tmp_path):
    folder = shutil.copytree(clip_folder, tmp_path / "model")
    (folder / "model.safetensors").unlink()
    torch.save({"visual_projection.weight": Bomb(tmp_path / "mark")}, folder / "pytorch_model.bin")
    refused(folder, "running code from them, and that is not done; save them as safetensors")
    assert not (tmp_path / "mark").exists()


def test_code_beside_the_checkpoint_is_not_run(clip_folder, tmp_path):
    folder = shutil.copytree(clip_folder, tmp_path / "model")
    mine = {"AutoConfig": "mine.MyConfig", "AutoModel": "mine.MyModel"}
    config = edited(model_type="my_own", auto_map=mine)((folder / "config.json").read_bytes())
    (folder / "config.json").write_bytes(config)
    (folder / "mine.py").write_text(f"open({str(tmp_path / 'mark')!r}, 'w').close()")
    refused(folder, "brings code of its own, which is not run")
    assert not (tmp_path / "mark").exists()


def test_options_that_make_no_sense(clip_folder):
    refused(clip_folder, "one {} for the caption; given: a photo", Options(prompt="a photo"), InputError)
    refused(clip_folder, "unknown precision; given: int4", Options(precision="int4"), InputError)
    refused(clip_folder, "fp16 needs a GPU", Options(device="cpu", precision="fp16"), InputError)
    refused(clip_folder, "no such device here; given: tpu", Options(device="tpu"))
    refused("nobody/no-such-model-here", "its model is not here and cannot be downloaded; load it once")
