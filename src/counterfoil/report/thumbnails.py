"""Pictures of a page as far as licence and budget let it carry them: thumbnails, and data of its browsers."""

import base64
import io
import json
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import PIL.Image
from jaxtyping import Float, Int
from numpy import ndarray
from PIL import features

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.base import NO_CANDIDATE
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.videos import FrameFeatures, Sampling, Video
from counterfoil.errors import DataError, UnknownNameError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Run
from counterfoil.report import tables as label_of
from counterfoil.report.tables import group

#: Whose images and captions a page carries along.
PICTURES = ("auto", "always", "never")
#: The longer side of a thumbnail, in pixels.
SIDE = 200
#: The frames of a video that are shown side by side, and the most pixels of each in width and height.
FRAMES, FRAME_SIDE = 5, 112
#: How much of a page its pictures may take, in bytes of base64 text.
BUDGET = 8_000_000
#: Shown in place of an image that cannot be decoded: a struck-out picture, in greys that both modes show.
BROKEN = (
    "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 40 30'%3E"
    "%3Cpath d='M1 1h38v28H1z' fill='none' stroke='%23808080'/%3E"
    "%3Cpath d='M6 24l8-9 6 6 5-5 9 8' fill='none' stroke='%23808080'/%3E"
    "%3Cpath d='M3 3l34 24' stroke='%23c4501b' stroke-width='1.5'/%3E%3C/svg%3E"
)


def carried(benchmark: Benchmark, pictures: str) -> tuple[bool, bool, str]:
    """Whether a page may hold captions, and images, and why not both; `pictures` is one of `PICTURES`."""
    if pictures not in PICTURES:
        raise UnknownNameError("choice of pictures", pictures, PICTURES)
    if not benchmark.card.redistributable and pictures != "always":
        under = f" ({benchmark.card.licence})" if benchmark.card.licence else ""
        why = (
            f"Images and captions are left out: the licence of {benchmark.title}{under} does not let a page "
            "carry them. With pictures set to “always” the page holds them, for your own eyes."
        )
        return False, False, why
    never = pictures == "never"
    return True, not never, "Images were left out as asked." if never else ""


@dataclass
class Thumbnails:
    """The pictures of a page, each once in `uris`; `broken` says why one failed, `left` is room in bytes."""

    left: int = BUDGET
    uris: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    _number: dict[str, int] = field(default_factory=dict)

    def add(self, images: Sequence[Image], questions: Sequence[Sequence[int]]) -> dict[int, int]:
        """Add the pictures of as many questions as have room; numbers in `uris` by position."""
        numbers: dict[int, int] = {}
        # By position its data URI, and why it is broken.
        added: dict[int, tuple[str, str]] = {}

        def load(position: int) -> tuple[str, str]:
            image = images[position]
            try:
                return data_uri(strip(image) if isinstance(image, Video) else thumbnail(image.decode())), ""
            except DataError as error:
                return BROKEN, str(error)

        with ThreadPoolExecutor(max_workers=4) as pool:
            for number, positions in enumerate(questions):
                if number % 32 == 0:
                    # A few questions ahead, on threads.
                    ahead = dict.fromkeys(p for of in questions[number : number + 32] for p in of)
                    # A video of which only features are at hand has no pixels.
                    fresh = [p for p in ahead if not isinstance(images[p].source, FrameFeatures | None)]
                    fresh = [p for p in fresh if p not in added]
                    added.update(zip(fresh, pool.map(load, fresh), strict=True))
                uris = {p: added[p] for p in positions if p in added}
                cost = sum(len(uri) for uri in {uri for uri, _ in uris.values()} if uri not in self._number)
                if cost > self.left:
                    break
                self.left -= cost
                for position, (uri, reason) in uris.items():
                    if reason:
                        self.broken[images[position].id] = reason
                    if uri not in self._number:
                        self._number[uri] = len(self.uris)
                        self.uris.append(uri)
                    numbers[position] = self._number[uri]
        return numbers


def thumbnail(picture: PIL.Image.Image, *, side: int = SIDE) -> bytes:
    """The picture at most `side` pixels wide and high, as WebP (JPEG where Pillow has none)."""
    small = picture.convert("RGB")
    small.thumbnail((side, side), PIL.Image.Resampling.LANCZOS, reducing_gap=3.0)
    out = io.BytesIO()
    if features.check("webp"):
        small.save(out, "WEBP", quality=72, method=4)
    else:
        small.save(out, "JPEG", quality=75, optimize=True)
    return out.getvalue()


def data_uri(data: bytes) -> str:
    """The bytes of a WebP, PNG or JPEG picture as an address that holds them."""
    kind = {b"RIFF": "webp", b"\x89PNG": "png"}.get(data[:4], "jpeg")
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def strip(video: Video) -> bytes:
    """Up to `FRAMES` frames of a video, evenly spaced and side by side, as `thumbnail` writes pictures."""
    frames = [frame.convert("RGB") for frame in replace(video, sampling=Sampling(count=FRAMES)).frames()]
    for frame in frames:
        frame.thumbnail((FRAME_SIDE, FRAME_SIDE), PIL.Image.Resampling.LANCZOS, reducing_gap=3.0)
    width = sum(frame.width for frame in frames) + 2 * (len(frames) - 1)
    whole = PIL.Image.new("RGB", (width, max(frame.height for frame in frames)), "white")
    left = 0
    for frame in frames:
        whole.paste(frame, (left, 0))
        left += frame.width + 2
    return thumbnail(whole, side=width)


def richest(comparison: Comparison) -> Benchmark:
    """Of the runs' benchmarks the one with the most images, then captions, at hand; the first of equals."""

    def riches(benchmark: Benchmark) -> tuple[int, int]:
        images = sum(image.source is not None for image in benchmark.images)
        return images, sum(caption.text is not None for caption in benchmark.captions)

    return max((run.benchmark for run in comparison.runs), key=riches)


def spread(comparison: Comparison, kinds: Callable[[Run], Int[ndarray, "questions"]]) -> list[int]:
    """All questions in an order whose every beginning samples each group and each pattern of `kinds`."""
    patterns = zip(*(kinds(run).tolist() for run in comparison.runs), strict=True)
    labels = next(iter(comparison.runs[0].benchmark.questions.groupings.values()), None)
    return round_robin([(labels[i] if labels else "", *pattern) for i, pattern in enumerate(patterns)])


def round_robin(strata: Sequence[Hashable]) -> list[int]:
    """Positions, each stratum having its turn, so that every beginning holds all strata.

    >>> round_robin(["a", "a", "a", "b"])
    [0, 3, 1, 2]
    """
    positions: dict[Hashable, list[int]] = {}
    for i, key in enumerate(strata):
        positions.setdefault(key, []).append(i)
    return [i for turn in zip_longest(*positions.values()) for i in turn if i is not None]


def to_json(value: object) -> str:
    """JSON that can stand inside an HTML script element: nothing ends it or begins a comment."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    for mark in "<>&\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def grouping(name: str, labels: Sequence[str]) -> dict[str, Any]:
    """A grouping as its labels and, per question, the position of its label (-1 for none)."""
    distinct = list(dict.fromkeys(label for label in labels if label))
    number = {label: i for i, label in enumerate(distinct)}
    codes = [number.get(label, -1) for label in labels]
    return {"name": label_of.grouping(name), "labels": list(map(group, distinct)), "codes": codes}


def shown_scores(scores: Float[ndarray, "questions ..."]) -> list[list[float]]:
    """A flat row of scores per question, six digits of each, without absent candidates."""
    rows = scores.reshape(len(scores), -1).tolist()
    return [[float(f"{value:.6g}") for value in row if value != NO_CANDIDATE] for row in rows]
