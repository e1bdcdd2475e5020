"""`counterfoil benchmarks`: what there is, released files, benchmarks in folders, data sets for others."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from counterfoil import terminal
from counterfoil.jobs.job import job, option, terminal_feedback
from counterfoil.jobs.shared_options import AVAILABLE, BENCHMARK, LIMIT, OVERWRITE


@job(
    examples="""Examples:
  counterfoil benchmarks fetch
  counterfoil benchmarks fetch sugarcrepe
  counterfoil benchmarks fetch winoground-scores --to data/"""
)
def fetch(
    names: Annotated[Sequence[str], option()] = (),
    *,
    to: Annotated[Path | None, option(metavar="FOLDER")] = None,
    mirror: Annotated[str | None, option(metavar="ADDRESS")] = None,
    overwrite: bool = False,
) -> None:
    """Download the released files of benchmarks, at a pinned commit and with checksums.

    An interrupted download continues; files that are present are checked and kept. Commit and checksums are
    written to fetched.json. For gated data sets HF_TOKEN, else the token that 'hf auth login' keeps, is sent
    to the hub, and to no mirror.

    Arguments:
        names: Benchmarks or releases; without any, what can be fetched is listed.
        to: Folder that gets one folder per benchmark. Default: COUNTERFOIL_DATA, else the user's data folder,
            where 'evaluate' looks.
        mirror: Download from this host instead of the repository's.
        overwrite: Replace different files of the same names.
    """
    from counterfoil.benchmarks.fetching import fetch, fetched, hub_token, release, releases
    from counterfoil.catalog import benchmark_name
    from counterfoil.storage.object_store import data_folder

    if not names:
        from counterfoil.cli.listings import print_words

        rows = []
        for one in releases().values():
            pinned = sum(bool(file.sha256) for file in one.files)
            pinned_by = "by its host" if one.host == "hub" else f"{pinned} of {len(one.files)}"
            rows.append((one.name, "yes" if fetched(one, data_folder()) else "", pinned_by, one.title))
        more = f"Fetch one: counterfoil benchmarks fetch NAME (to {data_folder()})"
        print_words(terminal.out(), ("name", "here", "checksums", "what"), rows, more)
        return
    wanted = list(dict.fromkeys(release(benchmark_name(name)).name for name in names))
    folder = data_folder() if to is None else to
    for name in wanted:
        chosen = release(name)
        with terminal.progress() as report:
            done = fetch(
                chosen,
                folder,
                mirror=mirror,
                token=hub_token() if chosen.host == "hub" else None,
                overwrite=overwrite,
                progress=report,
            )
        commit = done.revision if chosen.revision else f"{done.revision} (no commit is pinned: the newest)"
        print(f"{name}: {len(done.new)} files fetched, {len(done.present)} there already, in {done.folder}")
        terminal.note(f"{name}: {chosen.repository} at {commit}")
        for file in done.unpinned:
            terminal.note(
                f"{name}: {file} is not pinned by a checksum; sha256 {done.digests[file]} is written down"
            )
        if to is None and chosen.serves:
            terminal.note(f"{name}: 'counterfoil evaluate MODEL {chosen.serves[0]}' finds it by name")
        elif chosen.serves:
            terminal.note(f"{name}: name it with --data {chosen.serves[0]}={done.folder}")
        if chosen.needs:
            terminal.note(f"{name}: {chosen.needs}")


@job(
    examples="""Examples:
  counterfoil benchmarks save sugarcrepe --images val2017/ --out sets/sugarcrepe
  counterfoil benchmarks save pairs --data my.csv --images photos/ --available --out sets/mine"""
)
def save(
    benchmark: Annotated[str, BENCHMARK],
    out: Annotated[Path, option(flag="--out")],
    *,
    data: Path | None = None,
    images: Path | None = None,
    available: Annotated[bool, AVAILABLE] = False,
    limit: Annotated[int | None, LIMIT] = None,
    overwrite: Annotated[bool, OVERWRITE] = False,
) -> None:
    """Save a benchmark with its images as a folder, which every command takes in place of a name.

    Missing images stay marked as missing. Digests of all files show later changes. Check the licence before
    you share it: 'counterfoil list benchmarks NAME'.

    Arguments:
        benchmark: Name of a benchmark (see 'counterfoil list benchmarks').
        out: Folder to write.
        data: File or folder of the benchmark.
        images: Folder of the images, where the data name files.
        available: Take only questions whose images and captions are present.
        limit: The most questions to write, evenly spaced.
    """
    from counterfoil import catalog
    from counterfoil.benchmarks import folder
    from counterfoil.jobs.evaluation_inputs import at_hand
    from counterfoil.outputs import Folder, Outputs, active_outputs
    from counterfoil.store import check_writable

    name = catalog.benchmark_card(benchmark).name if benchmark in catalog.BENCHMARKS else benchmark
    check_writable(out, folder=True)
    outputs = active_outputs() or Outputs("")
    outputs.folder(Folder(out, folder.FILES, alone=True))
    loaded = catalog.benchmark(benchmark, data=data, images=images)
    if loaded.path is not None:
        # An output that would replace it is an error.
        outputs.read(loaded.path)
    if available:
        loaded = at_hand(loaded, terminal_feedback(), name=name)
    if limit is not None:
        loaded = loaded.limited(limit)
    with terminal.progress() as report:
        folder.save(loaded, out, progress=report)
    print(
        f"{len(loaded):,} questions, {len(loaded.images):,} images, {len(loaded.captions):,} captions: {out}"
    )
    if missing := sum(image.source is None for image in loaded.images):
        terminal.warn(f"{missing:,} of {len(loaded.images):,} images are not at hand and are named alone")
    if not loaded.card.redistributable and not terminal.quiet:
        terminal.warn(f"{name} may not be passed on: {loaded.card.licence}")
