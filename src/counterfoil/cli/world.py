"""What `counterfoil world build` and `counterfoil world sheet` drew."""

from typing import TYPE_CHECKING

from counterfoil import terminal

if TYPE_CHECKING:
    from rich.console import Console

    from counterfoil.jobs.world import Drawn


def show(drawn: "Drawn", console: "Console") -> None:
    """What was drawn, where the command is not quiet."""
    for line in () if terminal.quiet else drawn.lines:
        console.print(line, soft_wrap=True)
