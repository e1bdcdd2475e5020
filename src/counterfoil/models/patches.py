"""Features of patches in the space of captions: what each patch of a picture says by itself.

Vision transformers pool what their patches say by a last attention. Its values, taken through its output
projection, the last norm and the projection of the whole, lie in the joint space patch by patch ("MaskCLIP":
Zhou, Loy and Dai, ECCV 2022, section 3.2): what the pooling token would be, if it looked at one patch alone,
without what it was before. A pooling head (SigLIP) is run on each patch alone, which is the same idea to the
letter; a small network pools by mean and maximum, and is given each cell as if all cells were like it.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from math import isqrt
from typing import Any

from jaxtyping import Float
from numpy import ndarray

from counterfoil.metrics.heatmaps import WHOLE, Box
from counterfoil.models.base import ImageBatches
from counterfoil.models.images import Preparation, Resized, prepared
from counterfoil.models.runtime import import_torch


@dataclass(frozen=True, eq=False)
class Patches:
    """The unit vectors of a picture's patches, and the part of the picture that they cover."""

    vectors: Float[ndarray, "rows columns width"]
    box: Box = WHOLE


@dataclass(frozen=True, eq=False)
class PatchTower:
    """What gives features of patches: prepared pictures to a (batch, patches, width) tensor."""

    encode: Callable[[Sequence[ndarray]], Any]
    #: How the model sees a picture: resized and cropped, or whole.
    seen: Any = None
    #: Rows and columns of patches; None for a square.
    grid: tuple[int, int] | None = None


@dataclass(frozen=True, eq=False)
class PatchEncoder:
    """The patches of pictures as a model sees them."""

    preparation: Preparation
    tower: PatchTower

    def embed_patches(self, batches: ImageBatches, *, workers: int = 0) -> Iterator[list[Patches]]:
        """For each batch the patches of its pictures, decoded in `workers` processes.

        Raises `DataError` naming the file where an image cannot be read.
        """
        torch = import_torch()
        with closing(prepared(batches, self.preparation, workers=workers)) as stream:
            for batch, arrays in zip(batches, stream, strict=True):
                with torch.inference_mode():
                    features = torch.nn.functional.normalize(self.tower.encode(arrays).float(), dim=-1)
                rows, columns = self.tower.grid or (isqrt(features.shape[1]),) * 2
                vectors: ndarray = features.cpu().numpy().reshape(len(batch), rows, columns, -1)
                yield [
                    Patches(grid, box_of(self.tower.seen, image.decode().size))
                    for grid, image in zip(vectors, batch, strict=True)
                ]


def box_of(seen: Any, size: tuple[int, int]) -> Box:
    """The part of a picture of (width, height) that a model sees: the middle, where it crops.

    >>> box_of(Resized(50), (200, 100)), box_of(Resized(50, "squash"), (200, 100))
    ((0.25, 0.0, 0.75, 1.0), (0.0, 0.0, 1.0, 1.0))
    """
    if not isinstance(seen, Resized) or seen.mode == "squash":
        return WHOLE
    width, height = (max(1.0, side / min(size)) for side in size)
    left, top = (1 - 1 / width) / 2, (1 - 1 / height) / 2
    return left, top, 1 - left, 1 - top


def of_open_clip(model: Any) -> Callable[[Any], Any] | None:
    """Pixels to (batch, patches, width) of open_clip's vision transformer with a class token, else None."""
    from counterfoil.models import clip_fast

    if clip_fast.image_tower(model) is None:
        return None
    functional = import_torch().nn.functional
    visual = model.visual
    block = visual.transformer.resblocks[-1]

    def patches(pixels: Any) -> Any:
        states = _input_of(block, lambda: model.encode_image(pixels))
        if not visual.transformer.batch_first:
            states = states.transpose(0, 1)
        attention, width = block.attn, states.shape[-1]
        normed = block.ln_1(states[:, 1:])
        weight, bias = attention.in_proj_weight[2 * width :], attention.in_proj_bias[2 * width :]
        values = visual.ln_post(attention.out_proj(functional.linear(normed, weight, bias)))
        return values if visual.proj is None else values @ visual.proj

    return patches


def of_transformers(model: Any) -> Callable[..., Any] | None:
    """Inputs of `get_image_features` to (batch, patches, width), of CLIP and SigLIP; None for others."""
    kind = model.config.model_type
    tower: Any = getattr(model, "vision_model", None)
    if kind == "clip" and hasattr(tower, "post_layernorm"):
        layer = tower.encoder.layers[-1]

        def values(**inputs: Any) -> Any:
            states = _input_of(layer, lambda: model.get_image_features(**inputs))
            attention = layer.self_attn
            states_out = attention.out_proj(attention.v_proj(layer.layer_norm1(states[:, 1:])))
            return model.visual_projection(tower.post_layernorm(states_out))

        return values
    if kind == "siglip" and getattr(tower, "use_head", False):

        def alone(**inputs: Any) -> Any:
            states = _input_of(tower.head, lambda: model.get_image_features(**inputs))
            batch, places, width = states.shape
            return tower.head(states.reshape(batch * places, 1, width)).reshape(batch, places, -1)

        return alone
    return None


def _input_of(module: Any, run: Callable[[], Any]) -> Any:
    """The first argument that a module is called with while `run` runs."""
    inputs: list[Any] = []
    handle = module.register_forward_pre_hook(
        lambda _, args, named: inputs.append(args[0] if args else named["hidden_states"]), with_kwargs=True
    )
    try:
        run()
    finally:
        handle.remove()
    return inputs[0]
