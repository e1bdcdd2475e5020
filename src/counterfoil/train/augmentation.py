"""Pictures and captions that look different each time, by a seed and nothing else.

A picture is shown in part, perhaps mirrored, perhaps with a patch erased; a caption lacks some of its words.
"""

from dataclasses import dataclass

import numpy as np
import PIL.Image

from counterfoil.data.records import Image
from counterfoil.train.recipes.base import Recipe

#: Share of the picture's area that a crop covers, and its proportions, as torchvision's defaults have them.
_AREA = (0.08, 1.0)
_PROPORTIONS = (3 / 4, 4 / 3)
#: The same of a patch that is erased: timm's defaults, which PCME's released code has.
_ERASED_AREA = (0.02, 1 / 3)
_ERASED_PROPORTIONS = (0.3, 1 / 0.3)
#: What is erased has the mean colour by which CLIP's pictures (and within a level ImageNet's) are normalised:
#: it is about 0 in what the network sees.
ERASED = (123, 117, 104)


@dataclass(frozen=True)
class Variation:
    """What is done to pictures and captions of a stage; nothing by default."""

    #: Whether a random part of each picture is shown, mirrored every second time.
    crops: bool = False
    #: How probably a patch of a picture is erased.
    erasing: float = 0.0
    #: How probably each word of a caption is left out.
    word_drop: float = 0.0

    @classmethod
    def of(cls, recipe: Recipe) -> "Variation":
        """What a recipe asks for.

        >>> Variation.of(Recipe("mine", word_drop=0.1))
        Variation(crops=False, erasing=0.0, word_drop=0.1)
        """
        return cls(recipe.augment == "crop-flip", recipe.erasing, recipe.word_drop)

    @property
    def of_pictures(self) -> bool:
        """Whether pictures differ from one time to the next."""
        return self.crops or self.erasing > 0


#: Nothing is done to them.
UNVARIED = Variation()
#: A random part of each picture.
CROPPED = Variation(crops=True)


@dataclass(frozen=True)
class Varied(Image):
    """An image of which decoding shows what `variation` makes of it, a crop at `size` (width, height).

    What that is `key` alone decides: seed, epoch, row and role, say. So the same key shows the same pixels in
    any process and in any order of work.
    """

    key: tuple[int, ...] = ()
    size: tuple[int, int] = (224, 224)
    variation: Variation = CROPPED

    def decode(self) -> PIL.Image.Image:
        """The picture that `key` stands for; raises what decoding the image raises."""
        rng = np.random.default_rng(self.key)
        picture = super().decode()
        if self.variation.crops:
            box = crop(*picture.size, rng=rng)
            picture = picture.resize(self.size, PIL.Image.Resampling.BILINEAR, box=box)
            if rng.random() < 0.5:
                picture = picture.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
        if self.variation.erasing and rng.random() < self.variation.erasing:
            patch = erased(*picture.size, rng=rng)
            if patch is not None:
                picture = picture.copy()
                picture.paste(ERASED, patch)
        return picture


def varied(
    image: Image, *, key: tuple[int, ...], size: tuple[int, int], variation: Variation = CROPPED
) -> Varied:
    """`image`, to be decoded as `key` says."""
    return Varied(image.id, image.source, image.crop, image.photo, key=key, size=size, variation=variation)


def crop(width: int, height: int, *, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """A random part of a picture as (left, top, right, bottom), as torchvision's RandomResizedCrop draws it.

    Its area is uniform in 8 to 100 per cent of the picture's and its proportions log-uniform in 3:4 to 4:3,
    both up to whole pixels; of ten draws the first that fits counts. Where none does it is the largest part
    in the middle whose proportions are allowed.

    >>> crop(100, 50, rng=np.random.default_rng(0))
    (14, 18, 35, 46)
    """
    found = _rectangle((width, height), (width, height), _AREA, _PROPORTIONS, rng)
    if found is not None:
        return found
    low, high = _PROPORTIONS
    w, h = min(width, max(1, round(height * high))), min(height, max(1, round(width / low)))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h


def erased(width: int, height: int, *, rng: np.random.Generator) -> tuple[int, int, int, int] | None:
    """A random patch of a picture as (left, top, right, bottom), as torchvision's RandomErasing draws it.

    Its area is uniform in 2 to 33 per cent of the picture's and its proportions log-uniform in 3:10 to 10:3,
    smaller than the picture in both directions; of ten draws the first that fits counts, None where none
    does. Source: Zhong et al. 2020, Random Erasing Data Augmentation, algorithm 1, with timm's limits.

    >>> erased(100, 50, rng=np.random.default_rng(0))
    (23, 0, 48, 44)
    """
    return _rectangle((width, height), (width - 1, height - 1), _ERASED_AREA, _ERASED_PROPORTIONS, rng)


def without_words(text: str, *, key: tuple[int, ...], share: float) -> str:
    """The text without some of its words, each left out with the probability `share`; `key` decides.

    Words are what blanks separate, and one blank is between those that are left. Where none would be, one of
    them stays. PCME's released code, with a vocabulary of its own, puts its unknown word for a word with this
    probability, then takes out this share of all; a vocabulary of parts of words knows no unknown word.

    >>> without_words("a red dog on a  sofa", key=(1, 4), share=0.5)
    'red dog on a sofa'
    """
    words = text.split()
    rng = np.random.default_rng(key)
    stays = rng.random(len(words)) >= share
    if words and not stays.any():
        stays[rng.integers(len(words))] = True
    return " ".join(word for word, kept in zip(words, stays, strict=True) if kept)


def _rectangle(
    size: tuple[int, int],
    largest: tuple[int, int],
    area: tuple[float, float],
    proportions: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[int, int, int, int] | None:
    """The first of ten draws that is no larger than `largest`, anywhere in a picture of `size`."""
    width, height = size
    for _ in range(10):
        covered = width * height * rng.uniform(*area)
        shape = np.exp(rng.uniform(*np.log(proportions)))
        w, h = round((covered * shape) ** 0.5), round((covered / shape) ** 0.5)
        if 0 < w <= largest[0] and 0 < h <= largest[1]:
            left, top = int(rng.integers(0, width - w + 1)), int(rng.integers(0, height - h + 1))
            return left, top, left + w, top + h
    return None
