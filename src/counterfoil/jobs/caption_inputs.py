"""Captions to score: candidates with their images or videos and their references."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import numpy as np

from counterfoil.benchmarks.caption_files import Named, Written, read_candidates, read_references
from counterfoil.benchmarks.decoding import ALL, Sampling
from counterfoil.benchmarks.image_files import image_names, image_path, is_image_folder
from counterfoil.benchmarks.records import Caption, FileSource, Image
from counterfoil.benchmarks.references import References, contained
from counterfoil.benchmarks.tables import first_double
from counterfoil.benchmarks.videos import FEATURES, VIDEOS, Video, find, video_folder
from counterfoil.engine.caption_scoring import CaptionInputs
from counterfoil.engine.deduplicate import Note
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.limits import most
from counterfoil.jobs.arguments import path_of
from counterfoil.jobs.job import documented, option
from counterfoil.report.labels import amount
from counterfoil.storage import as_path, located

Policy = Literal["keep", "drop-reference", "drop-item"]

#: Files that are pictures, by the end of their names.
_PICTURES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")


@documented
class Media(TypedDict, total=False):
    """Where the images or videos of captions are, and which frames of a video are seen.

    Data:
        images: Folder of the images; ids are names of its files.
        videos: Folder of the videos, of folders of frames, or of features of frames.
        frames: So many frames of each video, evenly spaced.
        rate: So many frames of each video per second.
    """

    images: Annotated[str | Path | None, option(None)]
    videos: Annotated[str | Path | None, option(None)]
    frames: Annotated[int | None, option(None, low=1, high=most("frames"))]
    rate: Annotated[float | None, option(None, low=0, high=most("rate"))]


@dataclass(frozen=True)
class MediaFolder:
    """Where the images or videos are that captions are of; neither, for metrics that only read."""

    images: Path | None = None
    videos: Path | None = None
    sampling: Sampling = ALL

    @classmethod
    def of(cls, media: Media) -> "MediaFolder":
        """The folder that arguments name."""
        sampling = Sampling(media["frames"], media["rate"])
        return cls(path_of(media["images"]), path_of(media["videos"]), sampling)

    def __post_init__(self) -> None:
        for name in ("images", "videos"):
            if (path := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_path(path))
        if self.images is not None and self.videos is not None:
            raise InputError("captions are of images or of videos", given="--images and --videos")
        if self.videos is None and self.sampling != ALL:
            raise InputError("frames are those of videos", given="--frames or --rate without --videos")
        if self.images is not None and not is_image_folder(self.images):
            raise DataError("no such folder", where=self.images, hint="check --images")
        if self.videos is not None and not self.videos.is_dir() and not video_folder(self.videos):
            raise DataError("no such folder", where=self.videos, hint="check --videos")

    def items(self, candidates: Written, note: Note) -> tuple[Image, ...] | None:
        """What each candidate is of, in their order; None where no folder is named.

        Raises `DataError` for candidates that are of nothing in the folder. What lies in the folder and is
        a file of no candidate is left out, and `note` is told.
        """
        if self.videos is not None:
            return self._videos(candidates, self.videos, note)
        if self.images is None:
            return None
        names = sorted(image_names(self.images))
        files = {name: self.images / name for name in names if Path(name).suffix.lower() in _PICTURES}
        file_names = _matched(candidates, Named(files), self.images, "an image")
        _say_left_out(len(files) - len(set(file_names)), "image", self.images, note)
        return tuple(
            Image(name, FileSource(image_path(files[file].name, self.images)))
            for name, file in zip(candidates.captions, file_names, strict=True)
        )

    def _videos(self, candidates: Written, folder: Path, note: Note) -> tuple[Image, ...]:
        there = {
            name: is_folder
            for name, is_folder in sorted(video_folder(folder).items())
            if (is_folder or name.lower().endswith((*VIDEOS, *FEATURES))) and not name.startswith(".")
        }
        # One video may be there as a file, as frames and as features; `find` knows which one is taken.
        stems = dict.fromkeys(name if is_folder else Path(name).stem for name, is_folder in there.items())
        names = _matched(candidates, Named(stems), folder, "a video")
        sources = find(folder, names)
        _say_left_out(len(stems) - len(set(names)), "video", folder, note)
        for name, stem in zip(candidates.captions, names, strict=True):
            if stem not in sources:
                raise DataError("the folder holds no frames", where=folder / stem, given=f"of video '{name}'")
        return tuple(
            Video(name, sources[stem], sampling=self.sampling)
            for name, stem in zip(candidates.captions, names, strict=True)
        )


def read_inputs(
    candidates: Path,
    references: Path | None,
    shown: MediaFolder,
    *,
    policy: Policy | None = None,
    needs: Iterable[str] = (),
    embedded: bool = False,
    several: bool = False,
    empty: Literal["refuse", "leave-out"] = "refuse",
    note: Note,
) -> CaptionInputs:
    """All that is asked about one file of candidates; images that are `embedded` already need no folder.

    With `several` an image may have more than one candidate. The first is called as the image, the others
    ID@1, ID@2 and so on as the file counts them; `image_of` and `number_of` say it of a row.

    Where metrics do not need images, or references, what is named is read all the same, so that a mistake in
    it is found. References that say what the candidate says are dealt with as `policy` says; without one
    they are kept, and `note` is told. Candidates that are empty are left out where `empty` says so.
    """
    written = read_candidates(candidates, several=several, empty=empty)
    path, counts = written.path, [len(texts) for texts in written.captions.values()]
    if written.left_out:
        bare = written.images_left_out
        left = f"{amount(written.left_out, 'empty candidate')} left out"
        note(f"{path}: {left}" + (f", and {amount(bare, 'image')} with no other" if bare else ""))
    if max(counts) > 1:
        least = f"{min(counts):,} to " if min(counts) < max(counts) else ""
        many = f"{sum(counts):,} candidates of {amount(len(counts), 'image')}"
        note(f"{path}: {many}, {least}{max(counts):,} of each")
    people = None if references is None else read_references(references)
    images = shown.items(written, note)
    if people is None and policy is not None:
        raise InputError(
            "there are no references that could contain a candidate",
            given=f"--references-contain {policy}",
            hint="name their file with --references",
        )
    if "images" in needs and images is None and not embedded:
        raise InputError(
            "there is a metric that looks at images, and none were given",
            where=candidates,
            hint="name their folder with --images, or that of videos with --videos",
        )
    if "references" in needs and people is None:
        raise InputError(
            "there is a metric that compares with references, and none were given",
            where=candidates,
            hint="name their file with --references, or take clip-s, pac-s or em-score with a model",
        )
    captions = [
        Caption(f"{name}@{number}" if number else name, text)
        for name, texts in written.captions.items()
        for number, text in zip(written.numbers[name], texts, strict=True)
    ]
    candidate = np.arange(len(captions))
    owner = np.repeat(np.arange(len(written)), counts)
    reference_rows = None
    if people is not None:
        # COCO's annotations call images by number, and say which files the numbers are of.
        files = {file: name for name, file in people.files.items() if name in people.captions}
        names = _matched(written, Named([*people.captions, *files]), people.path, "references")
        names = [files.get(name, name) for name in names]
        _say_left_out(len(people) - len(set(names)), "image with references", people.path, note)
        own = [
            [Caption(f"{name}#{number}", text) for number, text in enumerate(people.captions[name])]
            for name in names
        ]
        ends = np.cumsum([len(captions), *map(len, own)])
        reference_rows = References.of([list(range(*bounds)) for bounds in pairwise(ends.tolist())]).take(
            owner
        )
        captions += chain.from_iterable(own)
    double = first_double(caption.id for caption in captions) if embedded else None
    if double is not None:
        raise DataError(
            "two captions of one name",
            where=candidates,
            given=f"'{double}'",
            hint="call the images otherwise",
        )
    together = CaptionInputs(
        images=tuple(map(Image, written.captions)) if images is None else images,
        captions=tuple(captions),
        image=None if images is None and not embedded else owner,
        candidate=candidate,
        references=reference_rows,
        owner=owner,
        name=str(candidates),
    )
    return together if reference_rows is None else _without_themselves(together, reference_rows, policy, note)


def _without_themselves(
    inputs: CaptionInputs, references: References, policy: Policy | None, note: Note
) -> CaptionInputs:
    texts = [str(caption.text) for caption in inputs.captions]
    # Candidates of one image read one list of references, as those of one document.
    containment = contained(texts, inputs.candidate, references, policy or "keep", shared=inputs.owner)
    if policy is None and containment.equal:
        note(
            f"{inputs.name}: {amount(containment.equal, 'candidate')} of {len(inputs):,} with a reference "
            "that says the same, which is kept; see --references-contain"
        )
    if message := containment.said():
        note(f"{inputs.name}: {message}")
    rows = np.flatnonzero(containment.included)
    if not len(rows):
        raise DataError("every candidate is one of its references", where=inputs.name, given=policy)
    return replace(inputs, references=containment.references).take(rows)


def image_of(inputs: CaptionInputs, row: int) -> str:
    """What the image of a candidate is called in the file."""
    assert inputs.owner is not None
    return inputs.images[inputs.owner[row]].id


def number_of(inputs: CaptionInputs, row: int) -> int:
    """Which of its image's candidates one is, counted from 0 as the file has them."""
    own = inputs.captions[inputs.candidate[row]].id.removeprefix(image_of(inputs, row))
    return int(own.removeprefix("@") or 0)


def _matched(candidates: Written, there: Named, place: Path, kind: str) -> list[str]:
    """The name in `place` of what each candidate is of; raises `DataError` for none and for several."""
    names_there, missing = [], []
    for name in candidates.captions:
        known = there.find(name)
        if known is None and name in candidates.files:
            known = there.find(candidates.files[name])
        several = there.several(name)
        if known is None and len(several) > 1:
            raise DataError(
                f"'{name}' may be several of what is there",
                where=place,
                given=", ".join(several[:3]),
                hint="write the whole name",
            )
        if known is None:
            missing.append(name)
        else:
            names_there.append(known)
    double = first_double(names_there)
    if double is not None and not missing:
        names = [
            name for name, known in zip(candidates.captions, names_there, strict=True) if known == double
        ]
        raise DataError(
            f"one image under two names, '{double}'",
            where=candidates.path,
            given=", ".join(f"'{name}'" for name in names[:3]),
            hint="write one name for all candidates of an image",
        )
    if missing:
        few = ", ".join(f"'{name}'" for name in missing[:3]) + (", ..." if len(missing) > 3 else "")
        raise DataError(
            f"candidates without {kind}",
            where=place,
            given=f"{len(missing):,} of {len(candidates):,} without, first: {few}",
            hint="ids are the names of files, with or without their endings, or COCO's numbers",
        )
    return names_there


def _say_left_out(number: int, what: str, place: Path, note: Note) -> None:
    if number:
        verb = "is" if number == 1 else "are"
        note(f"{located(place)}: {amount(number, what)} that no candidate names {verb} left out")


def same_items(all_asked: Sequence[CaptionInputs]) -> None:
    """Raise `DataError` unless all systems wrote captions of the same images."""
    first = all_asked[0]
    ours = {first.captions[i].id for i in first.candidate}
    for other in all_asked[1:]:
        theirs = {other.captions[i].id for i in other.candidate}
        if theirs != ours:
            odd = sorted(theirs ^ ours)
            raise DataError(
                "systems wrote captions of different images",
                where=other.name,
                given=f"{len(theirs - ours):,} that {first.name} has not, {len(ours - theirs):,} that it "
                f"lacks, first: '{odd[0]}'",
                hint="a table compares systems on the same images",
            )
