"""`counterfoil save`: a benchmark as a folder of counterfoil's own, with its pictures."""

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from counterfoil.cli import options
from counterfoil.cli.options import Available, Overwrite, Quiet

EPILOG = """Examples:

  counterfoil save sugarcrepe --images val2017/ --out sets/sugarcrepe

  counterfoil save pairs --data my.csv --images photos/ --available --out sets/mine"""


def command(
    benchmark: Annotated[
        str,
        typer.Argument(
            help="Name of a benchmark (see 'counterfoil list benchmarks').",
            autocompletion=options.complete_benchmarks,
        ),
    ],
    out: Annotated[Path, typer.Option(help="The folder it is saved in.")],
    data: Annotated[Path | None, typer.Option(help="File or folder of the benchmark.")] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images, where the data name files.")
    ] = None,
    available: Available = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many questions, evenly spread.")] = None,
    overwrite: Overwrite = False,
    quiet: Quiet = False,
) -> None:
    """Save a benchmark with its pictures in one folder, which every command takes in place of its name.

    Items that are not at hand are kept as such. The folder has digests of all its files, so that what was
    changed since is noticed. Mind the licence before it is passed on: 'counterfoil list benchmarks NAME'.
    """
    from counterfoil import catalog
    from counterfoil.cli import paths, terminal
    from counterfoil.data import folder
    from counterfoil.outputs.guard import Folder

    name = catalog.benchmark_card(benchmark).name if benchmark in catalog.benchmarks() else benchmark
    kind = Folder(out, folder.FILES, partial(folder.why_foreign, name=name), alone=True)
    paths.check(folders=[kind])
    found = catalog.benchmark(benchmark, data=data, images=images)
    paths.also_read(found.path)
    if available:
        whole, found = len(found), found.available()
        terminal.note(f"{name}: {len(found):,} of {whole:,} questions are at hand")
    if limit is not None:
        found = found.limited(limit)
    with terminal.progress(quiet=quiet) as report:
        folder.save(found, out, progress=report)
    print(f"{len(found):,} questions, {len(found.images):,} images, {len(found.captions):,} captions: {out}")
    if not found.card.redistributable and not quiet:
        terminal.warn(f"{name} may not be passed on: {found.card.licence}")
