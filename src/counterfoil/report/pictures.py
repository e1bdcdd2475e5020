"""Small copies of a benchmark's images for a page: each once, as many as a budget of bytes allows."""

import base64
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import islice

import PIL.Image
from PIL import features

from counterfoil.data.frames import Sampling
from counterfoil.data.records import Image
from counterfoil.data.videos import FrameFeatures, Video
from counterfoil.errors import DataError

#: The longer side of a thumbnail, in pixels.
SIDE = 200
#: A video is shown as so many frames side by side, each so many pixels wide and high at most.
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


@dataclass
class Album:
    """The pictures of a page: `uris` holds each once, however many benchmarks show it.

    `broken` names the images that could not be decoded and says why; `left` is the room left, in bytes.
    """

    left: int = BUDGET
    uris: list[str] = field(default_factory=list)
    broken: dict[str, str] = field(default_factory=dict)
    _number: dict[str, int] = field(default_factory=dict)

    def add(self, images: Sequence[Image], questions: Sequence[Sequence[int]]) -> dict[int, int]:
        """Take in the pictures of as many questions as there is room for, in the order given.

        `questions` holds, per question, positions into `images`; a question gets all of its pictures or
        none, and images without a source are passed over. Returns the number in `uris` by position.
        """
        numbers: dict[int, int] = {}
        for uris in _thumbnails(images, questions):
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
    """The bytes of a WebP or JPEG picture as an address that holds them.

    >>> data_uri(b"RIFF....WEBP")
    'data:image/webp;base64,UklGRi4uLi5XRUJQ'
    """
    kind = "webp" if data[:4] == b"RIFF" else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(data).decode('ascii')}"


def _thumbnails(
    images: Sequence[Image], questions: Sequence[Sequence[int]]
) -> Iterator[dict[int, tuple[str, str]]]:
    """Per question, position to (data URI, why it is broken), decoded a few questions ahead on threads."""
    known: dict[int, tuple[str, str]] = {}
    ahead = iter(questions)
    with ThreadPoolExecutor(max_workers=4) as pool:
        while block := list(islice(ahead, 32)):
            at_hand = [[p for p in positions if _to_be_seen(images[p])] for positions in block]
            fresh = list(dict.fromkeys(p for positions in at_hand for p in positions if p not in known))
            known.update(zip(fresh, pool.map(lambda p: _uri(images[p]), fresh), strict=True))
            for positions in at_hand:
                yield {p: known[p] for p in positions}


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


def _to_be_seen(image: Image) -> bool:
    """Whether there are pixels: a video of which only features are at hand has none."""
    return image.source is not None and not isinstance(image.source, FrameFeatures)


def _uri(image: Image) -> tuple[str, str]:
    try:
        if isinstance(image, Video):
            return data_uri(strip(image)), ""
        return data_uri(thumbnail(image.decode())), ""
    except DataError as error:
        return BROKEN, str(error)
