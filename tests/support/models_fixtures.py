"""Tiny models, randomly initialised and saved as people save them, and pictures to show them."""

import io
import json
import os

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.records import BytesSource, Caption, FileSource, Image
from made_once import made_once
from tiny_families import save_clip, save_model, save_text_models

TINY = {
    "embed_dim": 32,
    "vision_cfg": {"image_size": 32, "patch_size": 8, "width": 64, "layers": 3, "head_width": 32},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 48, "heads": 3, "layers": 3},
}


@pytest.fixture(scope="session")
def tiny_architectures(tmp_path_factory):
    """Small architectures registered with open_clip, by name."""
    open_clip = pytest.importorskip("open_clip")
    folder = tmp_path_factory.mktemp("architectures")
    text = {**TINY["text_cfg"]}
    configs = {
        "tiny": TINY,
        "tiny-quickgelu": {**TINY, "quick_gelu": True},
        # The text tower as a part of its own, as newer architectures have it.
        "tiny-custom": {**TINY, "custom_text": True},
        # Texts that may not be cut: both ways of attention, the last token pooled.
        "tiny-last": {
            **TINY,
            "custom_text": True,
            "text_cfg": {**text, "no_causal_mask": True, "pool_type": "last"},
        },
        "tiny-wide": {**TINY, "embed_dim": 40, "text_cfg": {**text, "width": 96}},
        "tiny-average": {**TINY, "vision_cfg": {**TINY["vision_cfg"], "pool_type": "avg"}},
    }
    for name, config in configs.items():
        (folder / f"{name}.json").write_text(json.dumps(config))
    open_clip.add_model_config(folder)
    return configs


@pytest.fixture(scope="session")
def tiny_model(tiny_architectures):
    """A randomly initialised open_clip model of a tiny architecture, always the same one."""
    torch, open_clip = pytest.importorskip("torch"), pytest.importorskip("open_clip")

    def build(name):
        torch.manual_seed(5)
        model = open_clip.model.CLIP if not tiny_architectures[name].get("custom_text") else None
        config = {k: v for k, v in tiny_architectures[name].items() if k != "custom_text"}
        built = (model or open_clip.model.CustomTextCLIP)(**config)
        for parameter in built.parameters():
            # Large enough that every part of a block shows in the answer.
            if parameter.ndim:
                parameter.data += 0.2 * torch.randn_like(parameter)
        return built.eval()

    return build


@pytest.fixture(scope="session")
def checkpoint(tiny_model, tmp_path_factory):
    """The weights of a tiny architecture in a file that says which activation they were trained with."""
    import torch

    folder = tmp_path_factory.mktemp("checkpoints")

    def saved(name):
        path = folder / f"{name}.pt"
        if not path.exists():
            said = {"quick_gelu": name.endswith("-quickgelu")}
            torch.save({"state_dict": tiny_model(name).state_dict(), "counterfoil": said}, path)
        return path

    return saved


@pytest.fixture(scope="session")
def drawn_images():
    """Ten different drawn pictures of different sizes, in memory."""
    rng = np.random.default_rng(0)
    images = []
    for number in range(10):
        height, width = rng.integers(30, 90, size=2)
        pixels = np.kron(rng.integers(0, 256, (height // 10, width // 10, 3)), np.ones((10, 10, 1)))
        buffer = io.BytesIO()
        PIL.Image.fromarray(pixels.astype(np.uint8)).save(buffer, "PNG")
        images.append(Image(f"drawn {number}", BytesSource(buffer.getvalue(), f"drawn {number}")))
    return images


@pytest.fixture(scope="session")
def photographs(shared_data):
    files = sorted((shared_data / "coco_mini" / "images").rglob("*.jpg"))[:32]
    return [Image(file.stem, FileSource(file)) for file in files]


@pytest.fixture(scope="session")
def captions():
    """Captions of 1 to 120 words, one in two languages and one with marks."""
    texts = [
        "cats", "a cat on a mat", "A man, in red; throws two (2) balls!", "ein Hund läuft – über die Straße",
    ]  # fmt: skip
    texts += [" ".join(["a very long caption about one dog"] * n) for n in (1, 2, 5, 17)]
    texts += [
        f"{n} birds sit on a wire above the {place}"
        for n, place in enumerate(("sea", "road", "old stone house"))
    ]
    return [Caption(str(number), text) for number, text in enumerate(texts)]


@pytest.fixture(scope="session")
def clip_folder(tmp_path_factory):
    """A tiny CLIP of transformers with a fifth of CLIP's words, saved with tokenizer and image processor."""
    pytest.importorskip("transformers")
    return made_once(tmp_path_factory, "tiny-clip", lambda folder: save_clip(folder, 10_000))


@pytest.fixture(scope="session")
def text_models(tmp_path_factory):
    """Models of texts with random weights: GPT-2 and BERT with some of CLIP's words, T5 with a few."""
    pytest.importorskip("transformers")
    pytest.importorskip("open_clip")
    return made_once(tmp_path_factory, "text-models", save_text_models)


@pytest.fixture(scope="session")
def matchers(tmp_path_factory):
    """A folder with a tiny cross-encoder of each family, of pixels and of regions."""
    pytest.importorskip("transformers")
    import tiny_matchers

    def make(folder):
        for name in (*tiny_matchers.NAMES, *tiny_matchers.OF_REGIONS):
            tiny_matchers.save(name, folder / name)

    return made_once(tmp_path_factory, "tiny-matchers", make)


@pytest.fixture(scope="session")
def siglip_folder(tmp_path_factory):
    """A tiny SigLIP of transformers with a SentencePiece model trained on a few sentences."""
    transformers, sentencepiece = pytest.importorskip("transformers"), pytest.importorskip("sentencepiece")
    folder = tmp_path_factory.mktemp("hf") / "tiny-siglip"
    folder.mkdir()
    model = io.BytesIO()
    sentences = [
        f"a {c} {a} is {w} the {p}"
        for c in ("red", "small", "old")
        for a in ("cat", "dog", "bird", "man")
        for w in ("on", "under", "behind")
        for p in ("mat", "house", "tree")
    ]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences), model_writer=model, vocab_size=90, model_type="unigram",
        unk_id=2, bos_id=-1, eos_id=1, pad_id=0, pad_piece="<pad>", minloglevel=2, num_threads=1,
        hard_vocab_limit=False,
    )  # fmt: skip
    (folder / "spiece.model").write_bytes(model.getvalue())
    (folder / "tokenizer_config.json").write_text(
        json.dumps(
            {
                "tokenizer_class": "SiglipTokenizer",
                "model_max_length": 64,
                "model_input_names": ["input_ids"],
                "pad_token": "</s>",
                "eos_token": "</s>",
                "unk_token": "<unk>",
            }
        )
    )
    layers = {"num_hidden_layers": 2, "num_attention_heads": 2, "hidden_size": 32, "intermediate_size": 64}
    config = transformers.SiglipConfig(
        text_config={**layers, "vocab_size": 120, "max_position_embeddings": 64, "projection_size": 32},
        vision_config={**layers, "image_size": 32, "patch_size": 8},
    )
    save_model(transformers.SiglipModel, config, folder)
    transformers.SiglipImageProcessor(size={"height": 32, "width": 32}).save_pretrained(folder)
    return folder


assert os.environ.get("HF_HUB_OFFLINE"), "tests of models never use the network"


@pytest.fixture(scope="session")
def backbones(clip_folder, siglip_folder):
    """A network of each kind, always with other weights than one built from its card."""

    def made(kind):
        import torch

        from counterfoil.models import networks, pcme, recurrent, registry

        torch.manual_seed(8)
        if kind == "small":
            small = pytest.importorskip("counterfoil.models.small")
            result = small.backbone(["a red star", "two cats on a mat"])
        elif kind in ("vse", "vsrn"):
            result = recurrent.backbone(["a red star", "two cats on a mat"], kind=kind)
        elif kind in ("hf", "siglip", "pcme-hf"):
            result = registry.backbone(f"hf:{siglip_folder if kind == 'siglip' else clip_folder}")
        else:
            result = registry.backbone(
                "open-clip:tiny-last" if kind == "open-clip-last" else "open-clip:tiny"
            )
        if kind.partition("-")[0] in ("pvse", "pcme"):
            result = getattr(pcme, kind.partition("-")[0])(result)
        if kind == "detector":
            result = networks.detector(result)
        for item in result.network.parameters():
            item.data += 0.05 * torch.randn_like(item)
        return result

    return made
