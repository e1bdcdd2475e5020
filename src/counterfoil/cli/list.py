"""`counterfoil list benchmarks | scorers | metrics | measures | recipes`."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from counterfoil.jobs import completion
from counterfoil.terminal import out, write_result

app = typer.Typer(
    help="What there is: benchmarks, kinds of scorer, caption metrics, measures, recipes of training.",
    no_args_is_help=True,
    epilog="Example: counterfoil list benchmarks",
)

Json = Annotated[bool, typer.Option("--json", help="Machine-readable.")]


@app.command()
def benchmarks(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all facts of this one.", autocompletion=completion.complete_benchmarks),
    ] = None,
    json: Json = False,
) -> None:
    """The benchmarks that can be measured, with form, size, licence and source.

    Example: counterfoil list benchmarks winoground
    """
    from counterfoil import catalog
    from counterfoil.benchmarks.fetching import serving

    if name is not None:
        card = catalog.benchmark_card(name)
        facts, release = card.model_dump(mode="json"), serving(card.name)
        if json:
            write_result("-", facts)
        else:
            print_facts({**facts, "fetch": f"counterfoil benchmarks fetch {release.name}" if release else ""})
        return
    cards = catalog.benchmarks().values()
    sizes = [f"{card.size:,}" if card.size else "varies" if card.citation else "yours" for card in cards]
    print_entries(
        [card.model_dump(mode="json") for card in cards] if json else None,
        ("name", "form", "questions", "main measure", "title"),
        [
            (card.name, card.form, size, card.measures[0] if card.measures else "", card.title)
            for card, size in zip(cards, sizes, strict=True)
        ],
        "All facts of one, licence and pitfalls among them: counterfoil list benchmarks NAME",
    )


@app.command()
def scorers(json: Json = False) -> None:
    """The kinds of scorer, how each is written, and what it needs.

    Example: counterfoil list scorers
    """
    from rich.padding import Padding

    from counterfoil import catalog

    entries = catalog.scorers().values()
    if json:
        write_result("-", [asdict(entry) for entry in entries])
        return
    console = out()
    for entry in entries:
        needs = f"; needs the extra '{entry.extra}'" if entry.extra else ""
        console.print(Text(f"{entry.prefix}:{entry.argument}", style="bold"))
        console.print(Padding(Text(entry.summary + needs), (0, 0, 0, 4)))
        console.print(Padding(Text(entry.example, style="dim"), (0, 0, 0, 4)))


@app.command()
def metrics(json: Json = False) -> None:
    """The caption metrics: what each reads, what it needs, where it comes from.

    Example: counterfoil list metrics
    """
    from counterfoil import catalog

    entries = catalog.metrics().values()
    print_entries(
        [asdict(entry) for entry in entries] if json else None,
        ("metric", "needs", "what it says", "source"),
        [(entry.name, ", ".join(entry.needs), entry.summary, entry.source) for entry in entries],
        "As a scorer each is written metric:NAME; 'bleu' stands for bleu-1 to bleu-4 in 'captions score'.",
    )


@app.command()
def measures(json: Json = False) -> None:
    """The measures, the form of question each belongs to, and what chance gives.

    Example: counterfoil list measures
    """
    from counterfoil import catalog

    known = catalog.measures()
    print_entries(
        [measure.to_json() for measure in known] if json else None,
        ("measure", "form", "chance", "meaning"),
        [(measure.name, measure.form, measure.chance, measure.meaning) for measure in known],
        "Of galleries with i2t_, t2i_ or mean_ before them, or without for all three; K is any number.",
    )


@app.command()
def recipes(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all values of this one.", autocompletion=completion.complete_recipes),
    ] = None,
    json: Json = False,
) -> None:
    """The recipes that models are trained by, with the papers' values.

    Example: counterfoil list recipes trohn-img
    """
    from counterfoil import catalog

    if name is None:
        known = catalog.recipes().values()
        print_entries(
            [asdict(recipe) for recipe in known] if json else None,
            ("recipe", "what is learnt", "columns besides image and caption"),
            [(recipe.name, recipe.about, ", ".join(recipe.needs)) for recipe in known],
            "All values of one, and what its paper leaves open: counterfoil list recipes NAME",
        )
        return
    recipe = catalog.recipe(name)
    if json:
        write_result("-", asdict(recipe))
        return
    from counterfoil.cli.tables import show
    from counterfoil.jobs.training import TrainingPlan

    plan = TrainingPlan(recipe, recipe, {})
    show(out(), plan.tables)
    out().print(*plan.notes, sep="\n")


def print_entries(
    facts: list[Any] | None, header: Sequence[str], rows: Sequence[Sequence[str]], more: str = ""
) -> None:
    """Entries as JSON, where their facts are given, else as a table with a line below it."""
    if facts is not None:
        write_result("-", facts)
        return
    from counterfoil.cli.tables import print_words

    print_words(out(), header, rows)
    if more:
        out().print(Text(f"\n{more}"))


def print_facts(facts: dict[str, object], console: Console | None = None) -> None:
    """A line per fact, without those that say nothing."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for key, value in facts.items():
        if value in ("", None, [], {}):
            continue
        if isinstance(value, list):
            text = "\n".join(str(part) for part in value)
        elif isinstance(value, dict):
            text = ", ".join(
                f"{name} {count:,}" if isinstance(count, int) else f"{name} {count}"
                for name, count in value.items()
            )
        else:
            text = str(value)
        table.add_row(key, Text(text))
    (console or out()).print(table)
