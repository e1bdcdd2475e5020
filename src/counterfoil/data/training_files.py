"""Training data from files, shards, COCO's captions or a benchmark's questions; the split for validation.

Shards are WebDataset's: tar files whose members come in samples, `KEY.jpg` beside `KEY.txt` or `KEY.json`.
The part of a member's name up to its first full stop is the sample's key, what follows says what it is:

    image               jpg, jpeg, png, webp, ... or image.jpg
    negative_image      negative.jpg or negative_image.jpg          generated_image   likewise
    caption             txt or caption.txt
    negative_caption    negative.txt or negative_caption.txt        generated_caption likewise
    json                an object: "caption" or "captions", "negative_caption", "generated_caption", "subset"

A text of its own counts before the one in the JSON. Members of one sample follow one another; those of other
kinds are left alone. Only the headers and the texts are read here: an image is a place in its shard.
"""

import math
import re
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.folder import is_benchmark_folder, load
from counterfoil.data.forms import Ids
from counterfoil.data.readers.coco_files import captions_files, photographs, read_captions
from counterfoil.data.records import Caption, FileSource, Image
from counterfoil.data.tables import EXTENSIONS, shown
from counterfoil.data.training_rows import (
    CAPTION_ROLES,
    IMAGE_ROLES,
    LABELS,
    Missing,
    Rows,
    TrainingSet,
    of_split,
)
from counterfoil.data.training_tables import read_rows
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import decoded, parse_json
from counterfoil.inputs.limits import check_amount

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


def is_coco(path: Path) -> bool:
    """Whether this is a captions file of COCO, or a folder that holds one (or has it in `annotations`)."""
    if path.is_file():
        return path.suffix == ".json" and path.stem.startswith("captions_")
    return path.is_dir() and bool(captions_files(path))


def read_coco(
    path: Path, *, images: Path | None = None, split: str | None = None, missing: Missing = "refuse"
) -> TrainingSet:
    """A row per annotation; line breaks in a caption become blanks, and blanks at its ends go.

    That is how the captions were cleaned for the released checkpoints of BiVLC. In a folder, the files of
    `split` count: those that begin with it ("train" for `captions_train2017.json`), or with "val" for
    "validation". Photographs are looked for in `images`, else beside the annotations. Raises `DataError`
    naming file and entry of what is broken, and a photograph that is not there, unless such are kept.
    """
    files = captions_files(path)
    if path.is_dir():
        stems = [file.stem.removeprefix("captions_") for file in files]
        wanted = split or "train"
        chosen = [f for f, s in zip(files, stems, strict=True) if s.startswith(_prefix(wanted))]
        if not chosen and split is None:
            chosen = files
        if not chosen:
            raise DataError("no captions of this split", where=path, given=split, allowed=stems)
        files = chosen
    found = read_captions(files)
    sources = photographs(
        [(name,) for name in found.files], dict.fromkeys(found.splits), path, _folder(images)
    )
    used = np.unique(found.owners)
    lacking = [i for i in used.tolist() if sources[i] is None]
    if lacking and missing == "refuse":
        raise DataError(
            f"{len(lacking):,} of {len(used):,} photographs are not there",
            where=images or path,
            given=found.files[lacking[0]],
            hint="give the folder that holds them with --images",
        )
    beside = images or (path if path.is_dir() else path.parent)
    place = np.zeros(len(found.files), dtype=np.int64)
    place[used] = np.arange(len(used))
    texts = [" ".join(text.strip().split("\n")) for text in found.texts]
    empty = next((i for i, text in enumerate(texts) if not text), None)
    if empty is not None:
        raise DataError("empty text", where=f"{found.source}, annotation {found.captions[empty]}")
    return TrainingSet(
        name="coco",
        images=tuple(
            Image(str(found.images[i]), sources[i] or FileSource(beside / found.files[i]))
            for i in used.tolist()
        ),
        captions=tuple(
            Caption(str(name), text) for name, text in zip(found.captions.tolist(), texts, strict=True)
        ),
        rows={"image": place[found.owners], "caption": np.arange(len(texts))},
        source=found.source,
    )


def _prefix(split: str) -> str:
    return "val" if split == "validation" else split


def _folder(images: Path | None) -> Path | None:
    if images is not None and not images.is_dir():
        raise DataError("no such image folder", where=images, hint="check the path given with --images")
    return images


def from_benchmark(benchmark: Benchmark, *, missing: Missing = "refuse") -> TrainingSet:
    """A row per quad; per right and wrong candidate of a choice; per caption of a gallery's images.

    Quads have all four roles, image 0 and caption 0 being the positive pair. A choice among captions has a
    `negative_caption`, one among images a `negative_image`. In a gallery, a caption goes with the image it
    was written for; where that is unknown, with every image that is a full match. Groupings stay. Raises
    `DataError` where a caption of a row is not at hand, or an image, unless such images are kept.
    """
    questions, place = benchmark.questions, benchmark.source or benchmark.name
    source, rows = questions.training_rows(where=place)
    _check_at_hand(benchmark, rows, missing)
    return TrainingSet(
        name=benchmark.name,
        images=benchmark.images,
        captions=benchmark.captions,
        rows=rows,
        groupings={}
        if source is None
        else {name: tuple(labels[i] for i in source) for name, labels in questions.groupings.items()},
        source=benchmark.source,
    )


def _check_at_hand(benchmark: Benchmark, rows: dict[str, Ids], missing_images: Missing) -> None:
    lacks = {
        "image": np.array([image.source is None for image in benchmark.images], dtype=bool),
        "caption": np.array([caption.text is None for caption in benchmark.captions], dtype=bool),
    }
    for role, positions in rows.items():
        kind = "image" if role.endswith("image") else "caption"
        missing = lacks[kind][positions]
        if missing.any() and not (kind == "image" and missing_images != "refuse"):
            item = (benchmark.images if kind == "image" else benchmark.captions)[
                int(positions[np.argmax(missing)])
            ]
            raise DataError(
                f"{int(missing.sum()):,} of {len(positions):,} rows have no {role} at hand",
                where=benchmark.source or benchmark.name,
                given=f"{kind} '{item.id}'",
                hint="learning needs the pictures and the texts themselves",
            )


def read(
    path: str | Path,
    *,
    images: str | Path | None = None,
    split: str | None = None,
    shelf: Path | None = None,
    missing: Missing = "refuse",
) -> TrainingSet:
    """The training data in `path`, whichever of these it holds; images stay in their files until asked for.

    * A folder that `counterfoil` saved: quads give the four roles, choices the ones they have, a gallery its
      images with the captions written for them.
    * WebDataset shards: a `.tar`, a folder of them, or a pattern "train-{000..015}.tar".
    * COCO's captions: `captions_train2017.json`, or the folder it lies in.
    * A table: Parquet as the hub keeps it, one file or a folder, and every table that `read_table` reads
      (`training_tables`).

    `images` is the folder of the photographs that a layout only names. `split` picks the files whose names
    begin with it ("train", "validation"), or the folder that is called so; None is "train" where there are
    several splits, else all there is. `shelf` is a folder in which the captions of large tables are kept as
    memory is, for the next process that reads them (`training_parquet`). With `missing` "keep" an image
    whose file is not there stays, and raises when it is decoded, as one that is broken does.
    Raises `DataError` naming the file, the row and the column that does not fit.
    """
    path, images = Path(path), None if images is None else Path(images)
    if is_benchmark_folder(path):
        if split not in (None, "train"):
            raise InputError("a saved benchmark has no splits", where=path, given=split)
        return from_benchmark(load(path, verify=False), missing=missing)
    if is_shards(path):
        return read_shards(path, split=split)
    if is_coco(path):
        return read_coco(path, images=images, split=split, missing=missing)
    inside = _folder_of_split(path, split)
    if inside is not None:
        return read(inside, images=images, shelf=shelf, missing=missing)
    return read_rows(path, images=images, split=split, shelf=shelf, missing=missing)


def _folder_of_split(path: Path, split: str | None) -> Path | None:
    """The folder of a split in a folder that holds nothing but such folders (and photographs)."""
    names = ("validation", "val", "valid") if split in ("val", "validation") else (split or "train",)
    if not path.is_dir() or any((path / name).is_file() for name in ("dataset_dict.json", "state.json")):
        return None
    if any(file.suffix.lower() in EXTENSIONS for place in (path, path / "data") for file in place.glob("*")):
        return None
    return next((path / name for name in names if (path / name).is_dir()), None)


def split(data: TrainingSet, *, share: float = 0.2, seed: int = 42) -> tuple[TrainingSet, TrainingSet]:
    """(training, validation): `share` of the rows, rounded up and drawn by `seed`, are for validation.

    The rows are those that `datasets.Dataset.train_test_split(test_size=share, seed=seed)` draws, in its
    order, which is the split behind the released checkpoints of BiVLC. It is a split of rows: an image with
    several captions may have some on either side. Raises `InputError` where one side would be empty.

    >>> from counterfoil.data.records import Caption, Image
    >>> rows = {"image": np.arange(10), "caption": np.arange(10)}
    >>> data = TrainingSet("ten", (Image("a"),) * 10, (Caption("b", "b"),) * 10, rows)
    >>> training, validation = split(data)
    >>> len(training), validation.rows["image"]
    (8, array([5, 6]))
    """
    n = len(data)
    held = math.ceil(share * n) if 0 < share < 1 else 0
    if not 0 < held < n:
        raise InputError(
            "the split would leave one side empty",
            where=data.source or data.name,
            given=f"{share} of {n:,} rows",
            allowed="a share between 0 and 1 that leaves a row on either side",
            hint="give more rows, or others to validate on",
        )
    order = np.random.default_rng(seed).permutation(n)
    return data.select(order[held:]), data.select(order[:held])
