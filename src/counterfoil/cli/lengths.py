"""`counterfoil lengths`: does what a scorer gets right go with the length of the captions?"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli.options import Json, Overwrite, Runs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.evaluation.lengths import LengthCorrelation

EPILOG = """Examples:

  counterfoil lengths runs/clip/winoground

  counterfoil lengths runs/* --json lengths.json"""


def command(
    runs: Runs,
    data: Annotated[
        Path | None,
        typer.Option(help="Data of Winoground, where its captions are not at hand: its tags hold lengths."),
    ] = None,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Pearson's correlation of a run's main measures with the length of the captions, in words.

    As in Table 6 of Winoground's paper, with intervals that know which questions share images and captions.
    Of captions that people rated, the score itself is correlated with the caption's length.
    """
    from counterfoil.cli import paths, terminal
    from counterfoil.errors import InputError
    from counterfoil.evaluation.lengths import length_correlations, mean_words
    from counterfoil.evaluation.run import find_runs

    paths.check(json=json)
    loaded = [run for run in find_runs(runs) if not run.benchmark.questions.directed]
    if not loaded:
        raise InputError("galleries alone: their queries have no captions of their own", given=runs[0])
    found = [
        each for run in loaded for each in length_correlations(run, words=mean_words(run.benchmark, data))
    ]
    if json != "-":
        _show(found)
    if json is not None:
        terminal.write_result(json, [each.to_json() for each in found])


def _show(found: "Sequence[LengthCorrelation]") -> None:
    from rich.table import Table
    from rich.text import Text

    from counterfoil.cli import terminal

    for benchmark in dict.fromkeys(each.benchmark for each in found):
        table = Table(box=None, pad_edge=False, header_style="bold", title_justify="left")
        for name in ("scorer", "measure", "r", "95 % interval", "p"):
            table.add_column(
                name, justify="left" if name in ("scorer", "measure") else "right", no_wrap=name != "scorer"
            )
        its = [each for each in found if each.benchmark == benchmark]
        for each in its:
            defined = each.value == each.value
            table.add_row(
                Text(each.scorer),
                each.measure,
                f"{each.value:+.2f}" if defined else "–",
                f"[{each.low:+.2f}, {each.high:+.2f}]" if defined else "does not vary",
                ("<0.0001" if each.p < 1e-4 else f"{each.p:.4f}") if defined else "",
            )
        console = terminal.out()
        first = its[0]
        console.print(
            Text(
                f"{benchmark}, {first.questions:,} questions, {first.words:.1f} words a caption", style="bold"
            )
        )
        console.print(table)
