"""Publication of a benchmark, as a folder or on the hub, checked against its licence."""

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.publishing import writing
from counterfoil.benchmarks.publishing.facts import UNKNOWN_DATE, Provenance, Publication
from counterfoil.benchmarks.publishing.hub import Upload, check_repository, upload
from counterfoil.benchmarks.publishing.licences import Licence, conflicts, find, stated
from counterfoil.benchmarks.publishing.writing import PublishedFolder, publish_folder
from counterfoil.benchmarks.tables import read_table
from counterfoil.build.run import build_folder, build_provenance
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import read_json
from counterfoil.jobs.annotate_agreement import read_judgements
from counterfoil.jobs.feedback import SILENT, Feedback
from counterfoil.jobs.outputs import guarded
from counterfoil.jobs.results import Tabular
from counterfoil.outputs import Folder
from counterfoil.report.tables import Column, Table, text_table
from counterfoil.store import check_writable


@dataclass(frozen=True, kw_only=True)
class PublishOptions:
    """Options of a publication; the defaults are those of the command line."""

    data: Path | None = None
    images: Path | None = None
    counts: bool = True
    #: Leave out questions of which an image or caption is not at hand.
    available: bool = False
    #: SPDX identifier or address of the licence; "" is what the benchmark's card states.
    licence: str = ""
    #: Publish although a licence forbids it.
    anyway: bool = False
    #: The share of the questions in the split "test", by image; None makes no splits.
    split: float | None = None
    seed: int = 0
    #: Upload to the hub, in place of saying what would be.
    execute: bool = False
    private: bool = False
    creators: Sequence[str] = ()
    date: str = ""
    release: str = "1.0.0"
    language: str = ""
    url: str = ""
    #: How the questions came to be (`Provenance.of`), or a JSON file of it.
    provenance: Mapping[str, Any] | Path | None = None
    campaigns: Sequence[str | Path] = ()
    overwrite: bool = False


@dataclass(frozen=True, eq=False, repr=False)
class Published(Tabular):
    """What was published, or would be; rows are files. `upload` is the answer of the hub."""

    to: str
    folder: PublishedFolder
    licence: Licence
    remarks: tuple[str, ...]
    upload: Upload | None = field(default=None)

    rows_by = ("file",)

    def _rows(self, by: str) -> pa.Table:
        return pa.Table.from_pylist([{"path": path, "bytes": n} for path, n in self.folder.sizes.items()])

    @property
    def executed(self) -> bool:
        """Whether it is where it should be: always for a folder, for the hub where it was uploaded."""
        return self.upload is not None or not self.to.startswith("hub:")

    @property
    def tables(self) -> tuple[Table]:
        """Files by the folder they are in, with their number and size."""
        groups: dict[str, list[int]] = {}
        for path, size in self.folder.sizes.items():
            groups.setdefault(f"{path.partition('/')[0]}/" if "/" in path else path, []).append(size)
        rows = [(name, f"{len(sizes):,}", f"{sum(sizes):,}") for name, sizes in groups.items()]
        caption = f"{self.to}, {self.licence.spdx or self.licence.url}"
        return (text_table(caption, "what", [Column("files"), Column("bytes")], rows),)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where it is, or what it takes to put it there, and what was left open."""
        if self.upload is not None:
            where = f"{self.upload.url} at revision {self.upload.revision}"
        elif self.executed:
            where = f"published to {self.to.removeprefix('folder:')}"
        else:
            where = f"nothing was uploaded to {self.to}; --execute does it"
        split = (f"split by image: {self.folder.lost}",) if self.folder.lost else ()
        return (where, *split, *self.remarks)

    def __repr__(self) -> str:
        done = "" if self.executed else ", not uploaded"
        files = f"{len(self.folder.sizes):,} files, {self.folder.bytes:,} bytes"
        return f"<Published {self.folder.name}: {files}{done}>"

    def to_json(self) -> dict[str, Any]:
        """The same as plain values."""
        facts = {"to": self.to, "licence": self.licence.spdx or self.licence.url, "executed": self.executed}
        sent = {} if self.upload is None else {"url": self.upload.url, "revision": self.upload.revision}
        return {**facts, **sent, "files": dict(self.folder.sizes), "notes": [*self.notes[1:]]}


def publish(
    benchmark: str | Benchmark,
    to: str,
    options: PublishOptions | None = None,
    *,
    feedback: Feedback = SILENT,
) -> Published:
    """Publish a benchmark to `folder:OUT`, or to `hub:OWNER/NAME`, where `execute` uploads it.

    Raises what reading the benchmark raises, and `InputError` for a licence that is unknown or forbids it
    (unless `anyway`), for a place that cannot be written, and where the hub refuses.
    """
    options = options or PublishOptions()
    kind, place = _target(to)
    provenance = _provenance(options.provenance, benchmark)
    sheets = [line for campaign in options.campaigns for line in _data_sheet(campaign)]
    provenance = provenance.model_copy(update={"people": (*provenance.people, *sheets)})
    licence = find(options.licence) if options.licence else None
    about = partial(
        Publication,
        repository=place if kind == "hub" else "",
        creators=tuple(options.creators),
        date=options.date,
        version=options.release,
        language=options.language,
        url=options.url,
        provenance=provenance,
    )
    about(licence=licence or find("CC0-1.0"))
    reads = [
        source
        for source in (benchmark, options.data, options.images, options.provenance)
        if isinstance(source, str | Path)
    ]
    with guarded("publish", overwrite=options.overwrite, reads=reads) as outputs:
        if kind == "folder":
            check_writable(Path(place), folder=True)
        source = _read(benchmark, options, feedback)
        if kind == "folder":
            outputs.folder(Folder(Path(place), writing.FILES, alone=True))
        if source.path is not None:
            outputs.read(source.path)
        licence = licence or _stated(source)
        against = conflicts(licence, source.card)
        if against and not options.anyway:
            raise InputError(
                f"may not be published: {against[0]}",
                where=source.name,
                hint="with --anyway it is, and its card says so",
            )
        facts = about(licence=licence, overridden=tuple(against))
        remarks = _remarks(source, facts, against)
        publishing = partial(publish_folder, source, about=facts, split=options.split, seed=options.seed)
        if kind == "folder":
            with feedback.progress() as progress:
                written = publishing(Path(place), progress=progress)
            return Published(to, written, licence, remarks)
        with tempfile.TemporaryDirectory(prefix="counterfoil-publish-") as temporary:
            data_set = Path(temporary) / "data-set"
            with feedback.progress() as progress:
                written = publishing(data_set, progress=progress)
            sent = None
            if options.execute:
                with feedback.busy(f"uploading {written.bytes:,} bytes to {place}"):
                    message = f"{source.card.title or source.name}, release {options.release}"
                    sent = upload(
                        data_set, place, private=options.private, update=options.overwrite, message=message
                    )
            return Published(to, written, licence, remarks, sent)


def _target(to: str) -> tuple[str, str]:
    kind, colon, place = to.partition(":")
    if not colon or kind not in ("folder", "hub") or not place:
        raise InputError(
            "no place to publish to", where="--to", given=to, allowed="folder:OUT, hub:OWNER/NAME"
        )
    return kind, check_repository(place) if kind == "hub" else place


def _read(benchmark: str | Benchmark, options: PublishOptions, feedback: Feedback) -> Benchmark:
    source = benchmark
    if not isinstance(source, Benchmark):
        with feedback.busy(f"reading {benchmark}"):
            source = catalog.benchmark(
                source, data=options.data, images=options.images, counts=options.counts
            )
    if options.available:
        whole, source = len(source), source.available()
        feedback.note(f"{source.name}: {len(source):,} of {whole:,} questions are at hand")
    return source


def _stated(benchmark: Benchmark) -> Licence:
    licence = stated(benchmark.card.licence)
    if licence is None:
        raise InputError(
            "no licence to publish under",
            where=benchmark.name,
            given=benchmark.card.licence or "none stated",
            hint="name one with --licence, such as CC-BY-4.0",
        )
    return licence


def _remarks(benchmark: Benchmark, about: Publication, against: Sequence[str]) -> tuple[str, ...]:
    """What was overridden, and what is missing."""
    remarks = [f"published although {reason}" for reason in against]
    missing = sum(image.source is None for image in benchmark.images)
    if missing:
        remarks.append(
            f"{missing:,} of {len(benchmark.images):,} images are not at hand and are named alone; "
            "--available leaves their questions out"
        )
    if not benchmark.captions_at_hand:
        remarks.append("the texts of some captions are not at hand, and their cells are empty")
    if about.date_of(benchmark.card) == UNKNOWN_DATE:
        remarks.append(f"no date is known, so that datePublished is {UNKNOWN_DATE}; --date gives one")
    if any(Path(image.id).is_absolute() for image in benchmark.images):
        remarks.append("images are called by paths of this machine; name them relative to --images")
    return tuple(remarks)


def _data_sheet(campaign: str | Path) -> tuple[str, ...]:
    """What a campaign says of its people."""
    from counterfoil.annotate.data_sheet import data_sheet

    judged = read_judgements(campaign)
    if judged.campaign is None:
        raise InputError("not the folder of a campaign", where="--campaign", given=campaign)
    return data_sheet(judged.campaign, judged.table)


def _provenance(given: Mapping[str, Any] | Path | None, benchmark: str | Benchmark) -> Provenance:
    """From the manifests of a build, and what is given besides: a mapping, or a JSON file.

    In a file `rows` names a table beside it.
    """
    build = build_folder(Path(benchmark)) if isinstance(benchmark, str) else None
    built = {} if build is None else build_provenance(build)
    if given is None or isinstance(given, Mapping):
        return Provenance.of({**built, **(given or {})})
    facts = read_json(given)
    if not isinstance(facts, dict):
        return Provenance.of(facts, where=given)
    if "rows" in facts:
        if not isinstance(facts["rows"], str):
            raise DataError("no name of a table", where=f"{given}, rows", given=facts["rows"])
        table = read_table(given.parent / facts["rows"])
        cells = {
            name: [None if cell is None else str(cell) for cell in table[name]] for name in table.columns
        }
        facts = {**facts, "rows": pa.table({name: pa.array(c, pa.string()) for name, c in cells.items()})}
    return Provenance.of({**built, **facts}, where=given)
