"""WebDataset shards: tar files whose members come in samples, `KEY.jpg` beside `KEY.txt` or `KEY.json`.

The part of a member's name up to its first full stop is the sample's key, what follows says what it is:

    image               jpg, jpeg, png, webp, ... or image.jpg
    negative_image      negative.jpg or negative_image.jpg          generated_image   likewise
    caption             txt or caption.txt
    negative_caption    negative.txt or negative_caption.txt        generated_caption likewise
    json                an object: "caption" or "captions", "negative_caption", "generated_caption", "subset"

A text of its own counts before the one in the JSON. Members of one sample follow one another; those of other
kinds are left alone. Only the headers and the texts are read here: an image is a place in its shard.
"""

import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.data.columns import shown
from counterfoil.data.training_rows import CAPTION_ROLES, IMAGE_ROLES, LABELS, Rows, TrainingSet, of_split
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.amounts import check_amount
from counterfoil.inputs.files import decoded, parse_json

_PICTURES = {"jpg", "jpeg", "png", "webp", "ppm", "bmp", "gif", "tif", "tiff"}
_BLOCK = 512
#: What a shard says of itself rather than of a sample.
_META = re.compile(r"__[^/]*__($|/|\.)")
_PATTERN = re.compile(r"\{(\d+)\.\.(\d+)\}|\{([^{}]*,[^{}]*)\}")


@dataclass(frozen=True)
class TarSource:
    """An image in an uncompressed tar file: `length` bytes from `offset` on. Picklable."""

    path: Path
    offset: int
    length: int
    member: str

    def read(self) -> bytes:
        """The bytes of the member; raises `DataError` where the shard is gone or was cut off."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                data = file.read(self.length)
        except OSError as error:
            raise DataError(f"image cannot be read: {error.strerror or error}", where=self) from None
        if len(data) < self.length:
            raise DataError("the shard is cut off", where=self)
        return data

    def __str__(self) -> str:
        return f"{self.path}, {self.member}"


def is_shards(path: Path) -> bool:
    """Whether this is a tar file, a pattern of them, or a folder that holds some."""
    if path.is_dir():
        return any(path.glob("*.tar"))
    return path.name.lower().endswith((".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst"))


def read_shards(path: Path, *, split: str | None = None) -> TrainingSet:
    """A row per sample, or per caption of it where it has a list of them, shard after shard.

    Raises `DataError` naming the shard that is missing, broken or compressed, and the sample that has no
    image, no caption, or not what the first sample has.
    """
    rows = Rows(str(path))
    for shard in _shards(path, split):
        for key, members in _samples(shard):
            _add(rows, shard, key, members)
    return rows.done(name=path.name.split(".")[0] or "shards")


def expand(pattern: str) -> list[str]:
    """The names a pattern stands for: "{000..002}" counts, "{a,b}" lists; several patterns multiply.

    >>> expand("train-{08..10}.tar")
    ['train-08.tar', 'train-09.tar', 'train-10.tar']
    >>> expand("{a,b}-{0..1}.tar")
    ['a-0.tar', 'a-1.tar', 'b-0.tar', 'b-1.tar']
    """
    # Counted before any name is made.
    count = 1
    for first, last, listed in _PATTERN.findall(pattern):
        if max(len(first), len(last)) > 18:
            raise InputError("a pattern counts too far", given=pattern[:80], allowed="numbers of 18 digits")
        count *= listed.count(",") + 1 if listed else max(int(last) - int(first) + 1, 0)
    if count:
        check_amount("files", count, what=f"the number of files that '{pattern[:80]}' stands for")
    found = _PATTERN.search(pattern)
    if found is None:
        return [pattern]
    first, last, listed = found.groups()
    if listed is None:
        width = len(first)
        middle = [str(number).zfill(width) for number in range(int(first), int(last) + 1)]
    else:
        middle = listed.split(",")
    return [
        name for each in middle for name in expand(pattern[: found.start()] + each + pattern[found.end() :])
    ]


def _shards(path: Path, split: str | None) -> list[Path]:
    if path.is_dir():
        return of_split(sorted(path.glob("*.tar")), split, where=path)
    found = [Path(name) for name in expand(str(path))]
    if not found:
        raise DataError(
            "the pattern names no shard", where=path, allowed="{first..last}, first not above last"
        )
    return found


def _samples(shard: Path) -> Iterator[tuple[str, dict[str, tarfile.TarInfo]]]:
    """Key and members of every sample, by the end of their names."""
    if not shard.is_file():
        raise DataError("no such shard", where=shard, hint="check the path")
    if shard.suffix.lower() != ".tar":
        raise DataError(
            "a compressed shard", where=shard, allowed=".tar", hint="unpack it to .tar: images are compressed"
        )
    try:
        with tarfile.open(shard, "r:") as tar:
            yield from _grouped(tar, shard)
            _check_end(shard, tar)
    except (tarfile.TarError, OSError, EOFError) as error:
        raise DataError(
            f"not a readable tar file: {error}", where=shard, hint="is the file cut off?"
        ) from None


def _grouped(tar: tarfile.TarFile, shard: Path) -> Iterator[tuple[str, dict[str, tarfile.TarInfo]]]:
    key: str | None = None
    members: dict[str, tarfile.TarInfo] = {}
    for member in tar:
        folder, _, name = member.name.rpartition("/")
        stem, dot, ending = name.partition(".")
        if not member.isreg() or not stem or not dot or _META.match(member.name):
            continue
        here, ending = f"{folder}/{stem}" if folder else stem, ending.lower()
        if here != key:
            if key is not None:
                yield key, members
            key, members = here, {}
        if ending in members:
            raise DataError("two members of one name", where=f"{shard}, {member.name}")
        members[ending] = member
    if key is not None:
        yield key, members


def _check_end(shard: Path, tar: tarfile.TarFile) -> None:
    """A whole tar file ends in blocks of zeros; one that was cut between two members does not."""
    last = max((m.offset_data + -(-m.size // _BLOCK) * _BLOCK for m in tar.getmembers()[-1:]), default=0)
    with open(shard, "rb") as file:
        file.seek(last)
        if file.read(_BLOCK) != bytes(_BLOCK):
            raise DataError("the shard is cut off", where=shard, hint="it does not end as tar files do")


def _add(rows: Rows, shard: Path, key: str, members: Mapping[str, tarfile.TarInfo]) -> None:
    where = f"{shard}, sample '{key}'"
    pictures: dict[str, TarSource] = {}
    texts: dict[str, list[str]] = {}
    facts: Mapping[str, Any] = {}
    for ending, member in members.items():
        role, kind = _role(ending)
        if kind == "image" and role in IMAGE_ROLES:
            if role in pictures:
                raise DataError(f"two images for '{role}'", where=where, given=", ".join(members))
            pictures[role] = TarSource(shard, member.offset_data, member.size, member.name)
        elif kind == "text" and role in CAPTION_ROLES:
            texts[role] = [_text(shard, member).strip()]
        elif ending == "json":
            facts = _facts(shard, member)
    for role in CAPTION_ROLES:
        if role not in texts:
            given = facts.get(role, facts.get(f"{role}s"))
            if given is not None:
                texts[role] = _listed(given, f"{where}, '{role}'")
    rows.add(where, pictures, texts, {name: facts[name] for name in LABELS if facts.get(name) is not None})


def _role(ending: str) -> tuple[str, str]:
    """("negative_image", "image") of "negative.jpg"; kind "" where it is nothing we know."""
    *named, last = ending.split(".")
    kind = "image" if last in _PICTURES else "text" if last == "txt" else ""
    item = "image" if kind == "image" else "caption"
    name = ".".join(named)
    return (item if not name else f"{name}_{item}" if name in ("negative", "generated") else name), kind


def _facts(shard: Path, member: tarfile.TarInfo) -> Mapping[str, Any]:
    value = parse_json(_text(shard, member), where=f"{shard}, {member.name}")
    if not isinstance(value, dict):
        raise DataError("not a JSON object", where=f"{shard}, {member.name}", given=shown(value))
    return value


def _text(shard: Path, member: tarfile.TarInfo) -> str:
    data = TarSource(shard, member.offset_data, member.size, member.name).read()
    return decoded(data, where=f"{shard}, {member.name}")


def _listed(given: object, where: str) -> list[str]:
    """One caption or a list of them, as a list."""
    found = []
    for each in given if isinstance(given, list) else [given]:
        if not isinstance(each, str):
            raise DataError("not a text", where=where, given=shown(each))
        found.append(each.strip())
    return found
