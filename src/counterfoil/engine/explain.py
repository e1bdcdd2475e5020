"""Explanations of scores: what each word adds, and which part of the picture each word leans on.

Occlusion covers one cell of a grid at a time (Zeiler and Fergus, ECCV 2014): a caption's heat is how far its
score drops, a word's heat how much larger that drop is than for the caption without the word.
"""

import io
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np
import PIL.Image
from jaxtyping import Float
from numpy import ndarray
from PIL import ImageFilter

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.engine.plan import batches, id_key
from counterfoil.engine.session import Session, score_items
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.inputs.files import digest
from counterfoil.metrics.heatmaps import WHOLE, Box
from counterfoil.models.base import abilities

#: What a covered cell shows: the mean colour of the whole picture, or the cell itself, blurred.
FILLS = ("mean", "blur")
#: The blur's radius in parts of the picture's shorter side.
_BLUR = 0.1
MOST_CELLS = 64

_WORD = re.compile(r"\w+(?:['’.-]\w+)*")


#: Where a part of a caption begins, and where it ends.
Span = tuple[int, int]


def words_of(text: str) -> tuple[Span, ...]:
    return tuple(match.span() for match in _WORD.finditer(text))


def without(text: str, span: Span, mask: str | None = None) -> str:
    """The caption with a part cut out, and the blank beside it; or with a mask token in its place."""
    before, after = text[: span[0]], text[span[1] :]
    if mask is not None:
        return before + mask + after
    if not before or (before[-1].isspace() and after[:1].isspace()):
        after = after.lstrip()
    return (before + after).rstrip()


@dataclass(frozen=True)
class Occlusion:
    """A grid of `cells` x `cells` over a picture, each cell covered in turn with `fill`."""

    cells: int = 7
    fill: str = "mean"

    def __post_init__(self) -> None:
        if not 1 <= self.cells <= MOST_CELLS:
            raise InputError("cells to a side of the grid", given=self.cells, allowed=f"1 to {MOST_CELLS}")
        if self.fill not in FILLS:
            raise UnknownNameError("fill of covered cells", self.fill, FILLS)

    def of(self, image: Image, key: str) -> tuple[list[Image], list[str]]:
        steps = np.arange(self.cells + 1) / self.cells
        boxes = [
            (float(steps[column]), float(steps[row]), float(steps[column + 1]), float(steps[row + 1]))
            for row in range(self.cells)
            for column in range(self.cells)
        ]
        images = [
            Image(f"{image.id} without {number} of {self.cells} x {self.cells} by {self.fill}", source)
            for number, source in enumerate(Covered(image, box, self.fill) for box in boxes)
        ]
        return images, [digest(f"{key} covered {box} {self.fill}".encode()) for box in boxes]


@dataclass(frozen=True)
class Covered:
    image: Image
    #: (left, top, right, bottom) in parts of the sides.
    box: Box
    fill: str

    def read(self) -> bytes:
        buffer = io.BytesIO()
        self.picture().save(buffer, format="PNG")
        return buffer.getvalue()

    def picture(self) -> PIL.Image.Image:
        whole, cover = _painted(self.image, self.fill)
        sides = (whole.width, whole.height) * 2
        left, top, right, bottom = (round(part * side) for part, side in zip(self.box, sides, strict=True))
        covered = whole.copy()
        covered.paste(cover.crop((left, top, right, bottom)), (left, top))
        return covered

    def __str__(self) -> str:
        return f"{self.image.source} with a part covered"


@lru_cache(maxsize=2)
def _painted(image: Image, fill: str) -> tuple[PIL.Image.Image, PIL.Image.Image]:
    """The picture, and what covers it; the cells of one picture come one after another."""
    whole = image.decode()
    if fill == "blur":
        return whole, whole.filter(ImageFilter.GaussianBlur(_BLUR * min(whole.size)))
    red, green, blue = (round(float(level)) for level in np.asarray(whole).mean(axis=(0, 1)))
    return whole, PIL.Image.new("RGB", whole.size, (red, green, blue))


def shortened(caption: Caption, spans: Sequence[Span], mask: str | None) -> list[Caption]:
    assert caption.text is not None
    return [
        Caption(f"{caption.id} without {start}-{end}", without(caption.text, (start, end), mask))
        for start, end in spans
    ]


#: Differences below this part of the largest score are rounding, and 0.
_ROUNDING = 1e-12

_GRID = Occlusion()


@dataclass(frozen=True)
class HeatMethod:
    """A method that gives heatmaps: its name, and its unit in words."""

    name: str
    title: str
    unit: str
    needs: str = ""
    #: Whether 0 means nothing and the sign matters.
    signed: bool = False


_DROPS = "how far the score drops where the cell is covered"
_BACK = "share of the attention that goes back to the patch"
_PATCHES = "a dual encoder with features of patches in the space of its captions"
_ROLLOUT, _GRAD_CAM = "the attention of ViLT, FLAVA or VisualBERT", "the cross-attention of BLIP or LXMERT"
OCCLUSION = HeatMethod("occlusion", "Occlusion", _DROPS, signed=True)
PATCHES = HeatMethod("patches", "Patch similarity", "cosine of the patch with the text", _PATCHES)
_ATTENTION = (
    HeatMethod("rollout", "Attention rollout", _BACK, _ROLLOUT),
    HeatMethod("grad-cam", "Grad-CAM", "cross-attention times the gradient of a match", _GRAD_CAM),
)
METHODS: Mapping[str, HeatMethod] = {method.name: method for method in (OCCLUSION, PATCHES, *_ATTENTION)}


@dataclass(frozen=True)
class PairToExplain:
    image: Image
    caption: Caption
    spans: tuple[Span, ...]

    @property
    def texts(self) -> list[str]:
        """The caption, and each of its parts."""
        text = self.caption.text or ""
        return [text, *(text[start:end] for start, end in self.spans)]


@dataclass(frozen=True, eq=False)
class Heatmap:
    """The heatmaps of one pair by one method: of the caption as a whole and of each of its parts."""

    method: str
    whole: Float[ndarray, "rows columns"]
    parts: Float[ndarray, "spans rows columns"]
    box: Box = WHOLE


@dataclass(frozen=True, eq=False)
class ExplainedPair:
    """A pair's score, how far it drops without each part of the caption, and its heatmaps."""

    item: PairToExplain
    score: float
    drops: Float[ndarray, "spans"]
    heats: tuple[Heatmap, ...] = ()

    @property
    def words(self) -> list[str]:
        return self.item.texts[1:]


@dataclass(frozen=True, eq=False)
class ExplainedQuestion:
    """A question with its pairs, by positions of captions and images in the benchmark."""

    id: str
    #: By (caption, image).
    pairs: Mapping[tuple[int, int], ExplainedPair]


def methods_of(model: Any) -> tuple[str, ...]:
    """The methods that give heatmaps of a model's pairs, those that look inside of the model first."""
    if not {"embeds", "scores_pairs"}.intersection(abilities(model)):
        problem = "has no scores of new images and captions, so there is nothing to explain"
        allowed = "dual encoders and models of pairs: models, functions, ..."
        raise InputError(problem, where=model.identity.name, allowed=allowed)
    return (*(name for name in METHODS if _inside(name, model) is not None), OCCLUSION.name)


def check_methods(model: Any, wanted: Sequence[str]) -> tuple[str, ...]:
    """The methods asked for, by default those that look inside, else occlusion (none without images)."""
    for name in wanted:
        if name not in METHODS:
            raise UnknownNameError("method of heatmaps", name, METHODS)
    able = methods_of(model)
    for name in wanted:
        if name not in able:
            problem = f"{METHODS[name].title.lower()} needs {METHODS[name].needs}"
            raise InputError(problem, where=model.identity.name, given=f"--method {name}", allowed=able)
    if not wanted and able == (OCCLUSION.name,) and "images" not in getattr(model, "needs", ("images",)):
        return ()
    return tuple(dict.fromkeys(wanted)) or able[: max(1, len(able) - 1)]


def explain(
    model: Any,
    pairs: Sequence[PairToExplain],
    *,
    methods: Sequence[str] = (),
    occlusion: Occlusion = _GRID,
    mask: str | None = None,
    session: Session = Session(),
) -> list[ExplainedPair]:
    names = check_methods(model, methods)
    scored = _by_scores(model, pairs, occlusion if "occlusion" in names else None, mask, session)
    inside = {name: _inside(name, model) for name in names}
    heats = {name: of(model, pairs, session) for name, of in inside.items() if of is not None}
    return [
        ExplainedPair(
            pair, score, drops, tuple(covered if name == "occlusion" else heats[name][i] for name in names)
        )
        for i, (pair, (score, drops, covered)) in enumerate(zip(pairs, scored, strict=True))
    ]


def _by_scores(
    model: Any,
    pairs: Sequence[PairToExplain],
    occlusion: Occlusion | None,
    mask: str | None,
    session: Session,
) -> Iterator[tuple[float, ndarray, Any]]:
    whole = {pair.image.id: pair.image for pair in pairs}
    opens = "images" in getattr(model, "needs", ("images", "captions"))
    names = session.keys([*whole.values()]) if opens else [id_key(image) for image in whole.values()]
    # All perturbed items, and where those of each picture and of each pair are; equal ones are scored once.
    images, keys, captions = list[Image](), list[str](), list[Caption]()
    pictures_of: dict[str, ndarray] = {}
    for image, key in zip(whole.values(), names, strict=True):
        covered, names_of_covered = ([], []) if occlusion is None else occlusion.of(image, key)
        pictures_of[image.id] = len(images) + np.arange(1 + len(covered))
        images += [image, *covered]
        keys += [key, *names_of_covered]
    positions = []
    for pair in pairs:
        cut = [pair.caption, *shortened(pair.caption, pair.spans, mask)]
        positions.append((len(captions) + np.arange(len(cut)), pictures_of[pair.image.id]))
        captions += cut
    rows = [np.repeat(texts[:, None], len(pictures), axis=1).ravel() for texts, pictures in positions]
    columns = [np.tile(pictures, len(texts)) for texts, pictures in positions]
    asked_pairs = np.concatenate(rows), np.concatenate(columns)
    scores = score_items(model, images, keys, captions, asked_pairs, session=session)
    start = 0
    for texts, pictures in positions:
        part = scores[start : start + len(texts) * len(pictures)].reshape(len(texts), len(pictures))
        start += part.size
        drop = _rounded(part[0, 0] - part[1:, 0], part)
        heatmap = None
        if occlusion is not None:
            fall = _rounded(part[:, :1] - part[:, 1:], part)
            grid = (-1, occlusion.cells, occlusion.cells)
            more = _rounded(fall[0] - fall[1:], part)
            heatmap = Heatmap(OCCLUSION.name, fall[0].reshape(grid[1:]), more.reshape(grid))
        yield float(part[0, 0]), drop, heatmap


def _rounded(differences: ndarray, scores: ndarray) -> ndarray:
    """Differences of `scores`, 0 where they are no more than rounding."""
    least = _ROUNDING * max(float(np.abs(scores).max()), 1e-300)
    return np.where(np.abs(differences) <= least, 0.0, differences)


def _patches(model: Any, pairs: Sequence[PairToExplain], session: Session) -> list[Heatmap]:
    """The cosine of every patch with the caption and with each part of it as a text of its own."""
    images = list({pair.image.id: pair.image for pair in pairs}.values())
    image_batches = batches(images, session.batch_size)
    patches_of: dict[str, Any] = {}
    stream = model.patches.embed_patches(image_batches, workers=session.workers)
    for batch, embedded in zip(image_batches, stream, strict=True):
        patches_of |= {image.id: patches for image, patches in zip(batch, embedded, strict=True)}
        session.progress("embedding patches", len(patches_of), len(images))
    texts = {text: number for number, text in enumerate(dict.fromkeys(t for p in pairs for t in p.texts))}
    captions = [Caption(str(number), text) for text, number in texts.items()]
    rows_of_batches = model.embed_captions(batches(captions, session.batch_size))
    vectors = np.concatenate([rows.astype(np.float64) for rows in rows_of_batches])
    heats = []
    for pair in pairs:
        patches = patches_of[pair.image.id]
        text_vectors = vectors[[texts[text] for text in pair.texts]]
        maps = np.einsum("rcw,tw->trc", patches.vectors.astype(np.float64), text_vectors)
        heats.append(Heatmap(PATCHES.name, maps[0], maps[1:], patches.box))
    return heats


def _cross(name: str, model: Any, pairs: Sequence[PairToExplain], session: Session) -> list[Heatmap]:
    heats = []
    for done, pair in enumerate(pairs, 1):
        whole, parts = model.heats.maps(name, pair.image, pair.caption, pair.spans)
        heats.append(Heatmap(name, whole, parts))
        session.progress(METHODS[name].title.lower(), done, len(pairs))
    return heats


_Inside = Callable[[Any, Sequence[PairToExplain], Session], list[Heatmap]]


def _inside(name: str, model: Any) -> _Inside | None:
    """What computes a method that looks inside of a model; None where the model cannot be asked so."""
    if name == PATCHES.name:
        return None if getattr(model, "patches", None) is None else _patches
    heats = getattr(model, "heats", None)
    return partial(_cross, name) if heats is not None and name in heats.methods else None
