"""Image towers beside the reference: pictures resized on the device, and `torch.compile`.

Resizing is PyTorch's antialiased one in float32, rounded to bytes once; Pillow rounds after each of its two
passes and weighs in whole numbers, so pixels differ by a level or two of 255 and embeddings by little.
Compiling fuses operations and so rounds in other places; the first batch is computed both ways, and a program
that does not agree is refused. A smaller batch is filled up, since another size would be compiled anew.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.errors import ModelError
from counterfoil.models.images import Resized
from counterfoil.models.runtime import causes

#: Largest difference allowed between unit vectors of a library's towers and of what replaces them, by
#: precision.
TOLERANCE = {"fp32": 1e-4, "bf16": 0.05, "fp16": 0.01}


def normalised(pixels: Tensor, mean: Sequence[float], std: Sequence[float]) -> Tensor:
    """(batch, 3, height, width) levels of 255, less the mean of each colour and in units of its deviation.

    The same operations in the same order as torchvision's ToTensor and Normalize, in place.
    """
    colours = (
        torch.tensor(list(levels), dtype=torch.float32, device=pixels.device).view(3, 1, 1)
        for levels in (mean, std)
    )
    return pixels.div_(255).sub_(next(colours)).div_(next(colours))


@dataclass(frozen=True, eq=False)
class DevicePixels:
    """Pictures of any size to the pixels that a tower takes, on its device."""

    resized: Resized
    #: Mean and standard deviation of the three colours.
    mean: Sequence[float]
    std: Sequence[float]
    device: torch.device
    dtype: torch.dtype

    def __call__(self, pictures: Sequence[ndarray]) -> Tensor:
        """(batch, 3, size, size) normalised floats."""
        crops, size = [], self.resized.size
        for picture in pictures:
            height, width = picture.shape[:2]
            across, down = self.resized.target(width, height)
            # A copy, since what a worker sent may not be written to, which torch warns of.
            pixels = torch.from_numpy(picture.copy()).to(self.device).permute(2, 0, 1)[None].float()
            if (across, down) != (width, height):
                pixels = torch.nn.functional.interpolate(
                    pixels,
                    (down, across),
                    mode=self.resized.interpolation,
                    antialias=True,
                    align_corners=False,
                )
            left, top = self.resized.corner_at(across, down)
            # Whole levels from 0 to 255.
            crops.append(pixels[0, :, top : top + size, left : left + size].round().clamp(0, 255))
        return normalised(torch.stack(crops), self.mean, self.std).to(self.dtype)


class CompiledTower:
    """(batch, 3, height, width) pixels to (batch, width) features, by a program made at the first call.

    `tolerance` is the largest difference allowed between components of unit vectors, on the first batch.
    """

    def __init__(self, tower: Callable[[Tensor], Tensor], *, tolerance: float, where: str) -> None:
        self.tower, self.tolerance, self.where = tower, tolerance, where
        self.program: Callable[[Tensor], Tensor] = torch.compile(tower, dynamic=False)
        #: The largest batch so far; smaller ones are filled up to it.
        self.size = 0
        self.checked = False

    def __call__(self, pixels: Tensor) -> Tensor:
        """(batch, width) features; raises `ModelError` where no program can be made or it disagrees."""
        rows = len(pixels)
        if rows < self.size:
            pixels = torch.cat([pixels, pixels.new_zeros(self.size - rows, *pixels.shape[1:])])
        self.size = max(self.size, rows)
        hint = "leave out --set compile"
        try:
            features = self.program(pixels)[:rows]
        except Exception as error:
            problem = f"the image tower cannot be compiled: {' '.join(causes(error).split())[:240]}"
            raise ModelError(problem, where=self.where, hint=hint) from None
        if not self.checked and rows:
            compiled, plain = (
                torch.nn.functional.normalize(output.float(), dim=-1)
                for output in (features, self.tower(pixels)[:rows])
            )
            difference = float((compiled - plain).abs().max())
            # Written so that NaN is refused too.
            if not difference <= self.tolerance:
                problem = "the compiled image tower does not agree with the tower"
                given = f"unit vectors {difference:.2g} apart"
                allowed = f"at most {self.tolerance:g}"
                raise ModelError(problem, where=self.where, given=given, allowed=allowed, hint=hint)
            self.checked = True
        return features
