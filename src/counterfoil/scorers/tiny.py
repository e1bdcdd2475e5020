"""A dual encoder that has learnt nothing, as a checkpoint like any other.

Where it ends up says what a benchmark gives to the architecture alone. It is loaded by the loader that
loads everybody's checkpoints, so it also says that the way from a folder to a report works, with no download.
"""

from pathlib import Path
from typing import Any

from counterfoil.errors import MissingExtraError
from counterfoil.scorers.runtime import import_torch
from counterfoil.store import write_bytes, write_json

#: CLIP's architecture at the size of a thumbnail: 1.9 million parameters, most of them the vocabulary.
_MODEL = {
    "embed_dim": 64,
    "vision_cfg": {"image_size": 96, "patch_size": 16, "width": 64, "head_width": 32, "layers": 2},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 2},
}


def write_random_checkpoint(folder: Path, *, seed: int = 0) -> str:
    """Write a small CLIP of open_clip with random weights; returns its spec, `open-clip:local-dir:FOLDER`.

    The same seed gives the same weights, bit for bit, with one version of torch and open_clip; torch's own
    random state stays as it is. Raises `MissingExtraError` where torch or open_clip is not installed and
    `StorageError` where the folder cannot be written.
    """
    torch = import_torch()
    try:
        from open_clip.model import CLIP
        from safetensors.torch import save
    except ModuleNotFoundError as error:
        raise MissingExtraError(error.name or "open_clip", "models") from None

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = CLIP(**_MODEL)
    state = {name: tensor.contiguous() for name, tensor in model.state_dict().items()}
    config: dict[str, Any] = {"model_cfg": _MODEL, "preprocess_cfg": {"size": [96, 96], "mode": "RGB"}}
    write_bytes(folder / "open_clip_model.safetensors", save(state, metadata={"format": "pt"}))
    write_json(folder / "open_clip_config.json", config)
    return f"open-clip:local-dir:{folder}"
