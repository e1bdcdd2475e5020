"""Publication of a benchmark as a folder, checked against its licence."""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Unpack

import pyarrow as pa

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.publishing import writing
from counterfoil.benchmarks.publishing.facts import (
    UNKNOWN_DATE,
    Licence,
    Provenance,
    Publication,
    conflicts,
    find,
    stated,
)
from counterfoil.benchmarks.publishing.writing import PublishedFolder, publish_folder
from counterfoil.benchmarks.tables import read_table
from counterfoil.build.pipeline import build_folder, build_provenance
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import read_json
from counterfoil.jobs import shared_options as shared
from counterfoil.jobs.annotate_judgements import read_judgements
from counterfoil.jobs.evaluation_inputs import at_hand
from counterfoil.jobs.job import feedback_of, job, option
from counterfoil.jobs.results import Tabular, declared
from counterfoil.outputs import Folder, guarded
from counterfoil.report.tables import Column, Table
from counterfoil.store import check_writable


class Published(Tabular):
    """What was published, and to which folder."""

    to: Path
    folder: PublishedFolder
    licence: Licence
    remarks: tuple[str, ...]

    rows_by = declared(file="`path` and `bytes: int`")

    def _rows(self, by: str) -> list[dict[str, Any]]:
        return [{"path": path, "bytes": n} for path, n in self.folder.sizes.items()]

    @property
    def tables(self) -> tuple[Table]:
        """Files by the folder they are in, with their number and size."""
        groups: dict[str, list[int]] = {}
        for path, size in self.folder.sizes.items():
            groups.setdefault(f"{path.partition('/')[0]}/" if "/" in path else path, []).append(size)
        rows = [(name, f"{len(sizes):,}", f"{sum(sizes):,}") for name, sizes in groups.items()]
        caption = f"{self.to}, {self.licence.spdx or self.licence.url}"
        return (Table.of(caption, "what", [Column("files"), Column("bytes")], rows),)

    @property
    def notes(self) -> tuple[str, ...]:
        """Where it is, and what was left open."""
        return (f"published to {self.to}", *self.remarks)

    def to_json(self) -> dict[str, Any]:
        licence = self.licence.spdx or self.licence.url
        files, notes = dict(self.folder.sizes), [*self.remarks]
        return {"to": str(self.to), "licence": licence, "files": files, "notes": notes}


@job(
    outputs="json",
    examples="""Examples:
  counterfoil benchmarks publish sets/mine --out release --licence CC-BY-4.0
  counterfoil benchmarks publish pairs --data my.csv --images photos/ --out release --licence CC-BY-4.0""",
)
def publish(
    benchmark: Annotated[shared.AnyBenchmark, shared.BENCHMARK],
    out: Annotated[str | Path, option(flag="--out", metavar="FOLDER")],
    *,
    licence: Annotated[str, option(metavar="SPDX|ADDRESS")] = "",
    anyway: bool = False,
    overwrite: Annotated[bool, shared.OVERWRITE] = False,
    data: str | Path | None = None,
    images: Annotated[str | Path | None, option(folder=True)] = None,
    available: Annotated[bool, shared.AVAILABLE] = False,
    counts: Annotated[bool, shared.COUNTS] = True,
    creators: Annotated[Sequence[str], option(flag="--creator")] = (),
    date: Annotated[str, option(metavar="YYYY-MM-DD")] = "",
    release: Annotated[str, option(metavar="X.Y.Z")] = "1.0.0",
    language: Annotated[str, option(metavar="CODE")] = "",
    url: Annotated[str, option(metavar="ADDRESS")] = "",
    provenance: Annotated[str | Path | dict[str, Any] | None, option(metavar="FILE")] = None,
    campaigns: Annotated[Sequence[str | Path], option(flag="--campaign", metavar="FOLDER")] = (),
    **reporting: Unpack[shared.Reporting],
) -> Published:
    """Publish a benchmark: Parquet that 'datasets' reads, a card, Croissant, checksums, and our own format.

    'counterfoil evaluate MODEL OUT' measures what was published. Equal benchmarks give equal bytes. 'hf
    upload OWNER/NAME OUT --repo-type dataset' puts it on the hub.

    `provenance` may also be a mapping (`counterfoil.benchmarks.publishing.facts.Provenance.of`). Raises what
    reading the benchmark raises, and `InputError` for a licence that is unknown or forbids it (unless
    `anyway`) and for a folder that cannot be written.

    Arguments:
        out: Folder to write.
        licence: Licence, such as CC-BY-4.0. Default: the card's.
        anyway: Publish although a licence forbids it; the card states so.

    Data:
        data: File or folder of the benchmark.
        images: Folder of the images, where the data name files.

    Facts:
        creators: Creator; may be repeated. Default: the citation's authors.
        date: Date of publication. Default: the first day of the citation's year, else 1970-01-01.
        release: Version of the data set.
        language: Language of the captions, such as en.
        url: Page of the data set.
        provenance: JSON file with method, steps, people, sources, limits, uses, rows (a table of who made
            what).
        campaigns: Campaign whose answers are in the benchmark; its data sheet is included; may be repeated.

    >>> import tempfile
    >>> published = publish("world-choices", f"{tempfile.mkdtemp()}/shapes", quiet=True)
    >>> published.licence.spdx, len(published.folder.sizes) > 3
    ('Apache-2.0', True)
    """
    feedback, out = feedback_of(reporting), Path(out)
    stated_provenance = _provenance(provenance, benchmark)
    # What campaigns say of their people.
    sheets: list[str] = []
    for campaign in campaigns:
        from counterfoil.annotate.export import data_sheet

        table, of = read_judgements(campaign)
        if of is None:
            raise InputError("not the folder of a campaign", where="--campaign", given=campaign)
        sheets += data_sheet(of, table)
    about = partial(
        Publication,
        creators=tuple(creators),
        date=date,
        version=release,
        language=language,
        url=url,
        provenance=stated_provenance.model_copy(update={"people": (*stated_provenance.people, *sheets)}),
    )
    named = find(licence) if licence else None
    about(licence=named or find("CC0-1.0"))
    reads = [source for source in (benchmark, data, images, provenance) if isinstance(source, str | Path)]
    with guarded("benchmarks publish", overwrite=overwrite, reads=reads) as outputs:
        check_writable(out, folder=True)
        source = benchmark
        if not isinstance(source, Benchmark):
            with feedback.busy(f"reading {source}"):
                source = catalog.benchmark(str(source), data=data, images=images, counts=counts)
        if available:
            source = at_hand(source, feedback)
        outputs.folder(Folder(out, writing.FILES, alone=True))
        if source.path is not None:
            outputs.read(source.path)
        named = named or stated(source.card.licence)
        if named is None:
            raise InputError(
                "no licence to publish under",
                where=source.name,
                given=source.card.licence or "none stated",
                hint="name one with --licence, such as CC-BY-4.0",
            )
        against = conflicts(named, source.card)
        if against and not anyway:
            hint = "with --anyway it is, and its card says so"
            raise InputError(f"may not be published: {against[0]}", where=source.name, hint=hint)
        stated_facts = about(licence=named, overridden=tuple(against))
        remarks = _remarks(source, stated_facts, against)
        if not licence:
            text = f"published under {named.spdx or named.url}, the licence that {source.name} states"
            remarks = (f"{text}; --licence names another", *remarks)
        with feedback.progress() as progress:
            written = publish_folder(source, out, stated_facts, progress=progress)
        return Published(out, written, named, remarks)


def _remarks(benchmark: Benchmark, about: Publication, against: Sequence[str]) -> tuple[str, ...]:
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


def _provenance(given: str | Path | Mapping[str, Any] | None, benchmark: shared.AnyBenchmark) -> Provenance:
    """Provenance from the manifests of a build, and a mapping or a JSON file (`rows`: a table beside it)."""
    build = None if isinstance(benchmark, Benchmark) else build_folder(Path(benchmark))
    built = {} if build is None else build_provenance(build)
    if given is None or isinstance(given, Mapping):
        return Provenance.of({**built, **(given or {})})
    given = Path(given)
    facts = read_json(given)
    if not isinstance(facts, dict):
        return Provenance.of(facts, where=given)
    if "rows" in facts:
        if not isinstance(facts["rows"], str):
            raise DataError("no name of a table", where=f"{given}, rows", given=facts["rows"])
        table = read_table(given.parent / facts["rows"])
        columns = {}
        for name in table.columns:
            cells = [None if cell is None else str(cell) for cell in table[name]]
            columns[name] = pa.array(cells, pa.string())
        facts = {**facts, "rows": pa.table(columns)}
    return Provenance.of({**built, **facts}, where=given)
