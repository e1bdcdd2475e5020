"""Pictures that look different each time: another part, perhaps mirrored, by a seed and nothing else."""

from dataclasses import dataclass

import numpy as np
import PIL.Image

from counterfoil.data.records import Image

#: Share of the picture's area that a crop covers, and its proportions, as torchvision's defaults have them.
_AREA = (0.08, 1.0)
_PROPORTIONS = (3 / 4, 4 / 3)


@dataclass(frozen=True)
class Varied(Image):
    """An image of which decoding shows a part, at `size` (width, height), mirrored every second time.

    Which part is decided by `key` alone: seed, epoch, row and role, say. So the same key shows the same
    pixels in any process and in any order of work.
    """

    key: tuple[int, ...] = ()
    size: tuple[int, int] = (224, 224)

    def decode(self) -> PIL.Image.Image:
        """The part that `key` stands for; raises what decoding the image raises."""
        rng = np.random.default_rng(self.key)
        picture = super().decode()
        box = crop(*picture.size, rng=rng)
        part = picture.resize(self.size, PIL.Image.Resampling.BILINEAR, box=box)
        mirrored = rng.random() < 0.5
        return part.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else part


def varied(image: Image, *, key: tuple[int, ...], size: tuple[int, int]) -> Varied:
    """`image`, to be decoded as `key` says."""
    return Varied(image.id, image.source, image.crop, image.photo, key=key, size=size)


def crop(width: int, height: int, *, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """A random part of a picture as (left, top, right, bottom), as torchvision's RandomResizedCrop draws it.

    Its area is uniform in 8 to 100 per cent of the picture's and its proportions log-uniform in 3:4 to 4:3,
    both up to whole pixels; of ten draws the first that fits counts. Where none does it is the largest part
    in the middle whose proportions are allowed.

    >>> crop(100, 50, rng=np.random.default_rng(0))
    (14, 18, 35, 46)
    """
    for _ in range(10):
        area = width * height * rng.uniform(*_AREA)
        proportions = np.exp(rng.uniform(*np.log(_PROPORTIONS)))
        w, h = round((area * proportions) ** 0.5), round((area / proportions) ** 0.5)
        if 0 < w <= width and 0 < h <= height:
            left, top = int(rng.integers(0, width - w + 1)), int(rng.integers(0, height - h + 1))
            return left, top, left + w, top + h
    low, high = _PROPORTIONS
    w, h = min(width, max(1, round(height * high))), min(height, max(1, round(width / low)))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h
