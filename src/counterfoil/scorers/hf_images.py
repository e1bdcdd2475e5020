"""Pictures as models of transformers take them, made small in worker processes where that comes to the same.

With Pillow, where the model's image processor does no more than resize, crop and scale; the two differ by a
level of 255 or two where the processor resizes with torchvision.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.scorers.images import Resized, Untouched

#: Levels of 255 by which Pillow's picture may differ from the processor's on a sample, on average.
_LEVELS = 1.0


@dataclass(frozen=True, eq=False)
class HfPixels:
    """What workers made of pictures to what the model takes, on the CPU."""

    processor: Any
    preparation: Resized | Untouched

    def __call__(self, pictures: Sequence[ndarray]) -> Tensor:
        """(batch, 3, height, width) floats, normalised."""
        if isinstance(self.preparation, Untouched):
            whole = [PIL.Image.fromarray(picture) for picture in pictures]
            found: Tensor = self.processor(images=whole, return_tensors="pt")["pixel_values"]
            return found
        mean, std = (
            torch.tensor(list(each), dtype=torch.float32).view(3, 1, 1)
            for each in (self.processor.image_mean, self.processor.image_std)
        )
        pixels = torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).contiguous()
        return pixels.float().div_(255).sub_(mean).div_(std)


def preparation_for(processor: Any) -> Resized | Untouched:
    """What workers may do in the processor's place; `Untouched` where it does anything else."""
    kind = {2: "bilinear", 3: "bicubic"}.get(int(getattr(processor, "resample", None) or -1))
    size, crop = (_sides(getattr(processor, name, None)) for name in ("size", "crop_size"))
    plain = (
        kind is not None
        and processor.do_resize
        and processor.do_rescale
        and processor.do_normalize
        and abs(processor.rescale_factor * 255 - 1) < 1e-6
        and not getattr(processor, "do_pad", False)
    )
    if not plain:
        return Untouched()
    crops = bool(getattr(processor, "do_center_crop", False))
    side = size.get("height", 0)
    if crops and set(size) == {"shortest_edge"} and len({size["shortest_edge"], *crop.values()}) == 1:
        made = Resized(size["shortest_edge"], "shortest", kind, corner="floor")  # type: ignore[arg-type]
    elif not crops and size == {"height": side, "width": side}:
        made = Resized(side, "squash", kind)  # type: ignore[arg-type]
    else:
        return Untouched()
    return made if _agrees(processor, made) else Untouched()


def _agrees(processor: Any, made: Resized) -> bool:
    """Whether Pillow and the processor make the same of a smooth picture whose margins are not even."""
    ramp = np.linspace(0, 12, 3 * 331 * 478).reshape(331, 478, 3)
    picture = PIL.Image.fromarray((np.sin(ramp * ramp) * 120 + 128).astype(np.uint8))
    ours = HfPixels(processor, made)([made(picture)])
    theirs = HfPixels(processor, Untouched())([np.asarray(picture)])
    if ours.shape != theirs.shape:
        return False
    levels = (ours - theirs).abs() * torch.tensor(list(processor.image_std)).view(3, 1, 1) * 255
    return float(levels.mean()) <= _LEVELS


def _sides(size: Any) -> dict[str, int]:
    """The sides that a processor's size names."""
    names = ("shortest_edge", "longest_edge", "height", "width", "max_height", "max_width")
    values = {name: getattr(size, name, None) for name in names} if not isinstance(size, Mapping) else size
    return {name: int(value) for name, value in dict(values).items() if value is not None}
