"""`counterfoil list benchmarks | scorers | metrics | measures | recipes`."""

from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli import options

if TYPE_CHECKING:
    from rich.console import Console

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
        typer.Argument(help="Show all facts of this one.", autocompletion=options.complete_benchmarks),
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
        facts = card.model_dump(mode="json")
        if json:
            print_json(facts)
            return
        release = serving(card.name)
        print_facts({**facts, "fetch": f"counterfoil fetch {release.name}" if release else ""})
        return
    cards = catalog.benchmarks()
    if json:
        print_json([card.model_dump(mode="json") for card in cards.values()])
        return
    print_table(
        ("name", "form", "questions", "main measure", "title"),
        [
            (
                card.name,
                card.form,
                f"{card.size:,}" if card.size else "varies" if card.citation else "yours",
                card.measures[0] if card.measures else "",
                card.title,
            )
            for card in cards.values()
        ],
    )
    _say("All facts of one, licence and pitfalls among them: counterfoil list benchmarks NAME")


@app.command()
def scorers(json: Json = False) -> None:
    """The kinds of scorer, how each is written, and what it needs.

    Example: counterfoil list scorers
    """
    from dataclasses import asdict

    from counterfoil import catalog

    entries = catalog.scorers().values()
    if json:
        print_json([asdict(entry) for entry in entries])
        return
    from rich.padding import Padding
    from rich.text import Text

    from counterfoil.terminal import out

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
    from dataclasses import asdict

    from counterfoil import catalog

    entries = catalog.metrics().values()
    if json:
        print_json([asdict(entry) for entry in entries])
        return
    print_table(
        ("metric", "needs", "what it says", "source"),
        [(entry.name, ", ".join(entry.needs), entry.summary, entry.source) for entry in entries],
    )
    _say("As a scorer each is written metric:NAME; 'bleu' stands for bleu-1 to bleu-4 in 'captions score'.")


@app.command()
def measures(json: Json = False) -> None:
    """The measures, the form of question each belongs to, and what chance gives.

    Example: counterfoil list measures
    """
    from counterfoil import catalog

    known = catalog.measures()
    if json:
        print_json([measure.to_json() for measure in known])
        return
    print_table(
        ("measure", "form", "chance", "meaning"),
        [(measure.name, measure.form, measure.chance, measure.meaning) for measure in known],
    )
    _say("Of galleries with i2t_, t2i_ or mean_ before them, or without for all three; K is any number.")


@app.command()
def recipes(
    name: Annotated[
        str | None,
        typer.Argument(help="Show all values of this one.", autocompletion=options.complete_recipes),
    ] = None,
    json: Json = False,
) -> None:
    """The recipes that models are trained by, with the papers' values.

    Example: counterfoil list recipes trohn-img
    """
    from dataclasses import asdict

    from counterfoil import catalog

    known = catalog.recipes()
    if name is not None:
        recipe = catalog.recipe(name)
        if json:
            print_json(asdict(recipe))
            return
        from counterfoil.cli.tables import show
        from counterfoil.jobs.training import TrainingPlan
        from counterfoil.terminal import out

        plan = TrainingPlan(recipe, recipe, {})
        show(out(), plan.tables)
        out().print(*plan.notes, sep="\n", markup=False, highlight=False)
        return
    if json:
        print_json([asdict(recipe) for recipe in known.values()])
        return
    print_table(
        ("recipe", "what is learnt", "columns besides image and caption"),
        [(recipe.name, recipe.about, ", ".join(recipe.needs)) for recipe in known.values()],
    )
    _say("All values of one, and what its paper leaves open: counterfoil list recipes NAME")


def print_json(value: object) -> None:
    from counterfoil.terminal import write_result

    write_result("-", value)


def _say(text: str) -> None:
    from rich.text import Text

    from counterfoil.terminal import out

    out().print(Text(f"\n{text}"))


def print_table(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
    from counterfoil.cli.tables import word_table
    from counterfoil.terminal import out

    console = out()
    for part in word_table(header, rows, console.width):
        console.print(part)


def print_facts(facts: dict[str, object], console: "Console | None" = None) -> None:
    from rich.table import Table
    from rich.text import Text

    from counterfoil.terminal import out

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
