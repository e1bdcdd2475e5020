"""`counterfoil world build | sheet`: benchmarks, training sets and a contact sheet of the drawn world."""

from typing import TYPE_CHECKING

from counterfoil import terminal
from counterfoil.cli import groups

if TYPE_CHECKING:
    from rich.console import Console

    from counterfoil.jobs.world import Drawn

app = groups.group(
    {"build": "jobs.world:build_world world:show", "sheet": "jobs.world:draw_sheet world:show"},
    help="A small world of paper shapes in which everything is known: build benchmarks and training sets.",
    epilog="Example: counterfoil world build quads --out world",
)


def show(drawn: "Drawn", console: "Console") -> None:
    """What was drawn, where the command is not quiet."""
    for line in () if terminal.quiet else drawn.lines:
        console.print(line, soft_wrap=True)
