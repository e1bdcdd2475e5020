"""Training data from WebDataset's shards: tar files, on disk or at a distance, whose members come in samples.

A sample is `KEY.jpg` beside `KEY.txt` or `KEY.json`: the part of a member's name up to its first full stop is
the key, what follows says what it is:

    image               jpg, jpeg, png, webp, ... or image.jpg
    negative_image      negative.jpg or negative_image.jpg          generated_image   likewise
    caption             txt or caption.txt
    negative_caption    negative.txt or negative_caption.txt        generated_caption likewise
    json                an object: "caption" or "captions", "negative_caption", "generated_caption", "subset"

A text of its own counts before the one in the JSON. Only headers and texts are read here: an image is a place
in its shard.
"""

import os
import re
import tarfile
from collections.abc import Iterator, Mapping
from itertools import groupby, product
from pathlib import Path
from typing import Any, NamedTuple

from counterfoil.benchmarks.records import TarSource
from counterfoil.benchmarks.tables import DataTable, TablePart, shown
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES, LABELS, of_split
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import Location, decoded, display_path, location, parse_json
from counterfoil.inputs.limits import check_amount
from counterfoil.storage.buckets import reaching
from counterfoil.storage.files import names_in, open_file

_PICTURES = {"jpg", "jpeg", "png", "webp", "ppm", "bmp", "gif", "tif", "tiff"}
_SHARDS = (".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz", ".tar.zst")
_BLOCK = 512
#: What a shard says of itself rather than of a sample.
_META = re.compile(r"__[^/]*__($|/|\.)")
_PATTERN = re.compile(r"\{(\d+)\.\.(\d+)\}|\{([^{}]*,[^{}]*)\}")
_BROKEN = "is the file cut off?"


class ShardMember(NamedTuple):
    """A member of a shard that may belong to a sample: its place, and its text where it is one."""

    name: str
    offset: int
    size: int
    text: str | None


def is_shards(path: Path) -> bool:
    """Whether this is a tar file, a pattern of them, or a folder that holds some; also behind a URL."""
    if path.name.lower().endswith(_SHARDS) and not path.is_dir():
        return True
    if isinstance(where := location(path), Location):
        return any(name.endswith(".tar") for name in names_in(where))
    return path.is_dir() and any(path.glob("*.tar"))


def read_shards(path: Path, *, split: str | None = None) -> DataTable:
    """A row per sample, shard after shard: its images and captions by role, and its labels."""
    if not path.name.lower().endswith(_SHARDS) or path.is_dir():
        where = location(path)
        names = [entry.name for entry in path.glob("*.tar")] if isinstance(where, Path) else names_in(where)
        listed = [path / name for name in sorted(names) if name.endswith(".tar")]
        shards = of_split(listed, split, where=path)
    elif not (shards := [Path(name) for name in expand(str(path))]):
        what = "the pattern names no shard"
        raise DataError(what, where=path, allowed="{first..last}, first not above last")
    samples: list[dict[str, Any]] = []
    parts = []
    for shard in shards:
        keys = []
        for key, members in _samples(shard):
            sample = f"{display_path(shard)}, sample '{key}'"
            cells = _cells(shard, sample, members)
            samples.append(cells)
            keys.append(key)
            odd = (cells.keys() ^ samples[0].keys()) - {*LABELS}
            if odd:
                there = min(odd) in cells
                what = f"a {min(odd)} that the first row lacks" if there else f"no {min(odd)}"
                allowed = f"{', '.join(samples[0])}, as in the first row"
                raise DataError(what, where=sample, given=", ".join(cells), allowed=allowed)
        parts.append(TablePart(display_path(shard), len(keys), "sample", keys))
    columns = {
        name: [cells.get(name) for cells in samples]
        for name in dict.fromkeys(name for cells in samples for name in cells)
    }
    return DataTable(columns, display_path(path), "shards", tuple(parts))


def expand(pattern: str) -> list[str]:
    """The names a pattern stands for: "{000..002}" counts, "{a,b}" lists; several patterns multiply.

    >>> expand("{a,b}-{08..09}.tar")
    ['a-08.tar', 'a-09.tar', 'b-08.tar', 'b-09.tar']
    """
    # Counted before any name is made.
    count = 1
    for first, last, listed in _PATTERN.findall(pattern):
        if max(len(first), len(last)) > 18:
            raise InputError("a pattern counts too far", given=pattern[:80], allowed="numbers of 18 digits")
        count *= listed.count(",") + 1 if listed else max(int(last) - int(first) + 1, 0)
    if count:
        check_amount("files", count, what=f"the number of files that '{pattern[:80]}' stands for")
    # Literal texts, each but the last followed by the three groups of a match.
    *pieces, end = _PATTERN.split(pattern)
    choices = []
    for literal, first, last, listed in zip(*(pieces[start::4] for start in range(4)), strict=True):
        if listed is None:
            middle = [str(number).zfill(len(first)) for number in range(int(first), int(last) + 1)]
        else:
            middle = listed.split(",")
        choices.append([literal + part for part in middle])
    return ["".join(parts) + end for parts in product(*choices)]


def _samples(shard: Path) -> Iterator[tuple[str, dict[str, ShardMember]]]:
    """Key and members of every sample, by the end of their names."""
    where = location(shard)
    if isinstance(where, Path) and not where.is_file():
        raise DataError("no such shard", where=shard, hint="check the path")
    if shard.suffix.lower() != ".tar":
        what = "a compressed shard"
        raise DataError(what, where=shard, allowed=".tar", hint="unpack it to .tar: images are compressed")
    for key, group in groupby(_members_of(shard, where), lambda member: _parted(member.name)[0]):
        members: dict[str, ShardMember] = {}
        for member in group:
            if members.setdefault(_parted(member.name)[1], member) is not member:
                raise DataError("two members of one name", where=f"{display_path(shard)}, {member.name}")
        yield key, members


def _members_of(shard: Path, where: Path | Location) -> Iterator[ShardMember]:
    """The members of a shard on a disk, or of one at a distance."""
    if isinstance(where, Path):
        try:
            with open(shard, "rb") as file:
                yield from _members(shard, file, os.fstat(file.fileno()).st_size)
        except OSError as error:
            raise DataError(f"not a readable tar file: {error}", where=shard, hint=_BROKEN) from None
        return
    with reaching(where, where.scheme, DataError), open_file(where) as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(0)
        yield from _members(shard, stream, size)


def _members(shard: Path, file: Any, size: int) -> Iterator[ShardMember]:
    """The members of an open tar file, texts read; raises `DataError` where it is broken or cut off."""
    end = 0
    try:
        with tarfile.open(fileobj=file, mode="r:") as tar:
            for member in tar:
                end = member.offset_data + -(-member.size // _BLOCK) * _BLOCK
                stem, dot, _ = member.name.rpartition("/")[2].partition(".")
                if not member.isreg() or not stem or not dot or _META.match(member.name):
                    continue
                ending = _parted(member.name)[1]
                role, kind = _role(ending)
                text = None
                if ending == "json" or (kind == "text" and role in CAPTION_ROLES):
                    where = f"{display_path(shard)}, {member.name}"
                    if member.offset_data + member.size > size:
                        raise DataError("the shard is cut off", where=where)
                    file.seek(member.offset_data)
                    text = decoded(file.read(member.size), where=where)
                yield ShardMember(member.name, member.offset_data, member.size, text)
    except (tarfile.TarError, EOFError) as error:
        raise DataError(f"not a readable tar file: {error}", where=shard, hint=_BROKEN) from None
    # A whole tar file ends in blocks of zeros; one that was cut between two members does not.
    file.seek(end)
    if file.read(_BLOCK) != bytes(_BLOCK):
        raise DataError("the shard is cut off", where=shard, hint="it does not end as tar files do")


def _parted(name: str) -> tuple[str, str]:
    """The key of a member's sample, and the end of its name."""
    folder, slash, base = name.rpartition("/")
    stem, _, ending = base.partition(".")
    return folder + slash + stem, ending.lower()


def _cells(shard: Path, where: str, members: Mapping[str, ShardMember]) -> dict[str, Any]:
    """The images, texts and labels of a sample, by role and name."""
    cells: dict[str, Any] = {}
    facts: Mapping[str, Any] = {}
    for ending, member in members.items():
        role, kind = _role(ending)
        if kind == "image" and role in IMAGE_ROLES:
            if role in cells:
                raise DataError(f"two images for '{role}'", where=where, given=", ".join(members))
            cells[role] = TarSource(shard, member.offset, member.size, member.name)
        elif ending == "json":
            place = f"{display_path(shard)}, {member.name}"
            facts = parse_json(member.text or "", where=place)
            if not isinstance(facts, dict):
                raise DataError("not a JSON object", where=place, given=shown(facts))
        elif member.text is not None:
            cells[role] = member.text
    for role in CAPTION_ROLES:
        given = facts.get(role, facts.get(f"{role}s"))
        if role not in cells and given not in (None, []):
            cells[role] = given
    for role in ("image", "caption"):
        if role not in cells:
            raise DataError(f"no {role}", where=where, hint="every row needs an image and a caption")
    return cells | {name: facts[name] for name in LABELS if facts.get(name) is not None}


def _role(ending: str) -> tuple[str, str]:
    """("negative_image", "image") of "negative.jpg"; kind "" where it is nothing we know."""
    *named, last = ending.split(".")
    kind = "image" if last in _PICTURES else "text" if last == "txt" else ""
    item = "image" if kind == "image" else "caption"
    name = ".".join(named)
    return (item if not name else f"{name}_{item}" if name in ("negative", "generated") else name), kind
