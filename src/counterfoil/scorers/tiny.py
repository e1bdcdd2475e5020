"""A dual encoder that has learnt nothing, as a checkpoint like any other.

Where it ends up says what a benchmark gives to the architecture alone. It is loaded by the loader that
loads everybody's checkpoints, so it also says that the way from a folder to a report works, with no download.
"""

from pathlib import Path
from typing import Any

from counterfoil.errors import MissingExtraError
from counterfoil.scorers.dual import import_torch
from counterfoil.store import write_bytes, write_json, write_text

#: The size of the untrained model: about 300 thousand parameters.
_WIDTH, _LAYERS, _HEADS = 64, 2, 4
_IMAGE, _PATCH = 96, 16
#: It reads letters, not words, so its captions are long.
_CONTEXT = 256
_BEGIN, _END = "<|startoftext|>", "<|endoftext|>"
#: The mean and deviation of pixels that OpenAI's CLIP takes off.
_MEAN, _DEVIATION = [0.48145466, 0.4578275, 0.40821073], [0.26862954, 0.26130258, 0.27577711]


def write_random_checkpoint(folder: Path, *, seed: int = 0) -> str:
    """Write a small CLIP of transformers with random weights to `folder`; returns its spec, `hf:FOLDER`.

    The same seed gives the same weights, bit for bit, with one version of torch and transformers; torch's own
    random state stays as it is. The tokenizer knows single letters. Raises `MissingExtraError` where torch or
    transformers is not installed, `StorageError` where the folder cannot be written.
    """
    torch = import_torch()
    try:
        from safetensors.torch import save
        from transformers import CLIPConfig, CLIPModel
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "transformers", "models") from None

    vocabulary = _vocabulary()
    shape = {
        "hidden_size": _WIDTH,
        "intermediate_size": 4 * _WIDTH,
        "num_hidden_layers": _LAYERS,
        "num_attention_heads": _HEADS,
    }
    config = CLIPConfig(
        text_config={
            **shape,
            "vocab_size": len(vocabulary),
            "max_position_embeddings": _CONTEXT,
            "bos_token_id": vocabulary[_BEGIN],
            "eos_token_id": vocabulary[_END],
            "pad_token_id": vocabulary[_END],
        },
        vision_config={**shape, "image_size": _IMAGE, "patch_size": _PATCH},
        projection_dim=_WIDTH,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = CLIPModel(config)
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}

    write_bytes(folder / "model.safetensors", save(state, metadata={"format": "pt"}))
    write_json(folder / "vocab.json", vocabulary)
    write_text(folder / "merges.txt", "#version: 0.2\n")
    write_json(folder / "tokenizer_config.json", _tokenizer_config())
    write_json(folder / "preprocessor_config.json", _preprocessor_config())
    write_json(folder / "config.json", {**config.to_dict(), "architectures": ["CLIPModel"]})
    return f"hf:{folder}"


def _vocabulary() -> dict[str, int]:
    """Every byte, inside a word and at its end, as CLIP's byte-level alphabet writes them, and two marks."""
    letters = _byte_letters()
    tokens = [*letters, *(f"{letter}</w>" for letter in letters), _BEGIN, _END]
    return {token: i for i, token in enumerate(tokens)}


def _byte_letters() -> list[str]:
    """A printable character for each of the 256 bytes, the same ones as GPT-2's alphabet."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    rest = [byte for byte in range(256) if byte not in printable]
    return [chr(code) for code in (*printable, *(256 + i for i in range(len(rest))))]


def _tokenizer_config() -> dict[str, Any]:
    return {
        "tokenizer_class": "CLIPTokenizer",
        "model_max_length": _CONTEXT,
        "do_lower_case": True,
        "bos_token": _BEGIN,
        "eos_token": _END,
        "pad_token": _END,
        "unk_token": _END,
    }


def _preprocessor_config() -> dict[str, Any]:
    return {
        "image_processor_type": "CLIPImageProcessor",
        "do_resize": True,
        "size": {"shortest_edge": _IMAGE},
        "resample": 3,
        "do_center_crop": True,
        "crop_size": {"height": _IMAGE, "width": _IMAGE},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": _MEAN,
        "image_std": _DEVIATION,
        "do_convert_rgb": True,
    }
