"""sDCI, the summarised Densely Captioned Images: regions and images with short captions and wrong ones.

Every test of the authors has two numbers: whether an image finds its caption among those of its batch of
eight, and whether the caption beats a wrong one that was made of it. Each is a benchmark of choices here.
"""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import choices
from counterfoil.benchmarks.readers.released_files import released_set
from counterfoil.benchmarks.readers.rows import Photos
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.tables import shown
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json
from counterfoil.inputs.pictures import open_picture

#: Captions of a batch, regions of fewer pixels a side that are left out, and what is added around a region.
BATCH, LEAST, AROUND = 8, 224, 0.15
#: Captions of a test that picks several.
FIVE = 5
#: A wrong caption that swaps words; the hardest is of any kind.
_SWAPS = "swaps"
#: An unusable mask, and one that has a label alone.
_BAD, _POOR = 2, 1

#: Corners of a region: left, top, right, bottom.
Box = tuple[int, int, int, int]


@dataclass(frozen=True)
class _Captioned:
    """An image, or a region of it, with its captions, first the one that single-caption tests take."""

    name: str
    photo: str
    region: bool
    captions: tuple[str, ...]
    wrong: str
    crop: Box | None


@dataclass(frozen=True)
class _Kind:
    """What a test takes: captions of a batch or wrong ones, regions beside images, how many captions, and the
    hardest wrong caption.
    """

    batches: bool = False
    regions: bool = True
    captions: int = 1
    hardest: bool = False


def _read(card: Card, data: Path | None, images: Path | None, *, kind: _Kind) -> Benchmark:
    """A choice of each entry among the captions of its batch, its own first, or between its own and wrong.

    `data` is the folder `densely_captioned_images` with `splits.json`, `complete/NAME.json` and `photos`
    (else the photographs are in `images`). Entries come as the authors' code makes them: of each file of the
    split `test` the image, then its regions of 224 pixels a side or more, in the order of `mask_data`, cut
    out with 15 % around. Files that their code passes over, for a summary, a wrong caption or a word about a
    mask that is missing, are passed over, and `source` says how many. Groupings: `kind` ("image", "region").
    A last batch of one entry has nothing to choose and is left out. Raises `DataError` where nothing is left.
    """
    entries, source = _entries(card, data, kind)
    if kind.batches and len(entries) % BATCH == 1:
        entries = entries[:-1]
    if not entries:
        raise DataError("no image or region with enough captions", where=source)
    assert data is not None
    beside = data / "photos"
    photos = Photos(images or (beside if beside.is_dir() else None)).sources(
        [entry.photo for entry in entries]
    )
    return choices(
        card,
        [entry.name for entry in entries],
        list(zip_longest(*_candidates(entries, kind))),
        [Image(entry.name, photos[entry.photo], crop=entry.crop, photo=entry.photo) for entry in entries],
        {"kind": tuple("region" if entry.region else "image" for entry in entries)},
        correct=kind.captions,
        source=source,
        path=data,
    )


#: An image or region chooses among the captions of its batch, eight in a row; its own comes first.
read_matching = partial(_read, kind=_Kind(batches=True))
#: Of the first five captions: all must score above all those of the others.
read_matching_five = partial(_read, kind=_Kind(batches=True, captions=FIVE))
#: The caption against the first wrong one that swaps words.
read_negatives = partial(_read, kind=_Kind())
#: Of the first five captions: all must beat the wrong one.
read_negatives_five = partial(_read, kind=_Kind(captions=FIVE))
#: Of whole images alone.
read_negatives_of_images = partial(_read, kind=_Kind(regions=False))
#: Against the wrong caption of any kind that the authors' CLIP scores highest.
read_hardest = partial(_read, kind=_Kind(hardest=True))


def _candidates(entries: Sequence[_Captioned], kind: _Kind) -> Iterator[list[str]]:
    """The captions that each entry chooses among, the right ones first."""
    for at, own in enumerate(entries):
        right = list(own.captions[: kind.captions])
        if not kind.batches:
            yield [*right, own.wrong]
            continue
        start = at - at % BATCH
        others = [entry for entry in entries[start : start + BATCH] if entry is not own]
        yield right + [text for entry in others for text in entry.captions[: kind.captions]]


def _entries(card: Card, data: Path | None, kind: _Kind) -> tuple[list[_Captioned], str]:
    """The entries of all files that have enough captions, and where they are from."""
    (file,) = released_set(card, data, ("splits.json",))
    assert data is not None
    splits = read_json(file)
    names = splits.get("test") if isinstance(splits, Mapping) else None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise DataError("no list of files under 'test'", where=file, given=shown(names))
    entries: list[_Captioned] = []
    passed = 0
    for name in names:
        whole = read_json(data / "complete" / name)
        try:
            entries += _of_file(whole, kind)
        except (KeyError, IndexError, TypeError, AttributeError):
            passed += 1
    entries = [entry for entry in entries if len(entry.captions) >= kind.captions]
    source = str(data)
    return entries, f"{source}, {passed:,} of {len(names):,} files left out" if passed else source


def _of_file(whole: Any, kind: _Kind) -> list[_Captioned]:
    """The entries of one file; raises `KeyError` and its like where the authors' code would pass it over."""
    summaries, negatives = whole["summaries"], whole["negatives"]
    if kind.regions and len(negatives) == 1:
        raise KeyError("negatives of regions")
    masks = list(whole["mask_data"].values())
    _ = whole["short_caption"], whole["extra_caption"]
    for mask in masks:
        # The full description, which the summary was made of, names every mask that can be described.
        if mask["mask_quality"] != _BAD:
            _ = mask["label"], mask["mask_quality"] == _POOR or mask["caption"]
    parts: list[tuple[str, Box | None]] = [("base", None)]
    if kind.regions:
        parts += _regions(masks, summaries, _size(masks, whole["image"]))
    entries = []
    for key, crop in parts:
        texts = summaries[key]
        # A text alone is one caption; tests of several take lists.
        captions = (texts,) if isinstance(texts, str) else (texts[0], *texts[1:])
        name = f"{Path(whole['image']).stem}/{key}"
        wrong = _wrong(negatives[key], whole["clip_scores"][key], hardest=kind.hardest)
        if not all(isinstance(text, str) for text in (*captions, wrong)):
            raise TypeError("a caption is no text")
        entries.append(_Captioned(name, whole["image"], crop is not None, captions, wrong, crop))
    return entries


def _wrong(of_kinds: Mapping[str, list[str]], scores: Mapping[str, float], *, hardest: bool) -> str:
    """The first that swaps words; or of all kinds the one of the highest score, the last of equal ones."""
    if not hardest:
        return of_kinds[_SWAPS][0]
    named = [
        (scores[f"{kind}_{at}"], text) for kind, texts in of_kinds.items() for at, text in enumerate(texts)
    ]
    highest = max(score for score, _ in named)
    return [text for score, text in named if score == highest][-1]


def _regions(
    masks: list[Any], summaries: Mapping[str, Any], size: tuple[int, int]
) -> Iterator[tuple[str, Box]]:
    """What each region that is large enough is called among summaries, and what is cut out around it.

    Its label and caption must be there, as for its description.
    """
    for mask in masks:
        first, last = mask["bounds"]["topLeft"], mask["bounds"]["bottomRight"]
        left, top, right, bottom = first["x"], first["y"], last["x"], last["y"]
        if right - left < LEAST or bottom - top < LEAST:
            continue
        _ = mask["label"], mask["caption"]
        named = f"m-{mask['idx']}-sc"
        wide, high = int((right - left) * AROUND), int((bottom - top) * AROUND)
        yield (
            named if named in summaries else f"m-{mask['idx']}",
            (
                max(left - wide, 0),
                max(top - high, 0),
                min(right + wide, size[0]),
                min(bottom + high, size[1]),
            ),
        )


def _size(masks: list[Any], where: str) -> tuple[int, int]:
    """Width and height of the image, which a mask has as well."""
    if not masks:
        return 0, 0
    try:
        with open_picture(io.BytesIO(base64.b64decode(masks[0]["outer_mask"]))) as mask:
            return mask.width, mask.height
    except (OSError, ValueError) as error:
        raise DataError(f"a mask is no picture: {error}", where=f"outer_mask of {where}") from None
