"""`counterfoil list benchmarks | models | metrics | measures | recipes` and `counterfoil annotate forms`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from counterfoil import catalog
from counterfoil.cli.program import imported
from counterfoil.jobs.job import job, option
from counterfoil.metrics.measures import every
from counterfoil.models.settings import described


class Listing(NamedTuple):
    """Entries as plain values, and as rows with a line below them, or as `show` prints them."""

    plain: Any
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    more: str = ""
    show: Callable[[Console], None] | None = None

    def to_json(self) -> Any:
        return self.plain


def show_entries(entries: Listing, console: Console) -> None:
    if entries.show is not None:
        entries.show(console)
    else:
        print_words(console, entries.header, entries.rows, entries.more)


def print_words(
    console: Console, header: Sequence[str], rows: Sequence[Sequence[str]], more: str = ""
) -> None:
    """Print a row per entry, its name first, and a line below; a paragraph each where columns break words."""
    columns = list(zip(header, *rows, strict=True))
    names = max(map(len, columns[0]))
    least = [max(len(word) for cell in column for word in [*cell.split(), ""]) for column in columns[1:]]
    if names + sum(2 + size for size in least) <= console.width:
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        table.add_column(header[0], no_wrap=True)
        for head, wide in zip(header[1:], least, strict=True):
            table.add_column(head, min_width=wide)
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print(table)
    else:
        for name, *cells in rows:
            console.print(Text(name, style="bold"))
            lines = (f"{head}: {cell}" for head, cell in zip(header[1:], cells, strict=True) if cell)
            console.print(Padding(Text("; ".join(lines)), (0, 0, 0, 4)))
    if more:
        console.print(Text(f"\n{more}"))


def print_facts(console: Console, facts: Mapping[str, object]) -> None:
    """A line per fact, without those that say nothing."""
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_column(style="bold", no_wrap=True)
    table.add_column()
    for key, value in facts.items():
        if isinstance(value, dict):
            pairs = value.items()
            text = ", ".join(f"{name} {n:,}" if isinstance(n, int) else f"{name}: {n}" for name, n in pairs)
        else:
            text = "\n".join(map(str, value if isinstance(value, list) else [value]))
        if value not in ("", None, [], {}):
            table.add_row(key, Text(text))
    console.print(table)


@job(outputs="json")
def benchmarks(name: Annotated[str | None, option(complete="benchmarks")] = None) -> Listing:
    """List benchmarks with form of question, size and main measure; with a name, all facts of one.

    Example: counterfoil list benchmarks winoground

    Arguments:
        name: Show all facts of this one; a TOML file or a folder names one's own.
    """
    from counterfoil.benchmarks.fetching import serving

    if name is not None:
        in_folder = name not in catalog.BENCHMARKS and Path(name).is_dir()
        card = catalog.benchmark(name).card if in_folder else catalog.benchmark_card(name)
        facts, release = card.model_dump(mode="json"), serving(card.name)
        fetch = f"counterfoil benchmarks fetch {release.name}" if release else ""
        # Without the function that reads it, which is for developers, and a limit that leaves nothing out.
        least = card.macro_least if card.macro_least > 1 else ""
        words = facts | {"reader": "", "macro_least": least, "fetch": fetch}
        if card.redistributable and not card.licence:
            words["redistributable"] = "unknown: no licence is stated"
        return Listing(facts, show=partial(print_facts, facts=words))
    cards = catalog.BENCHMARKS.values()
    sizes = [f"{card.size:,}" if card.size else "varies" if card.citation else "yours" for card in cards]
    rows = [
        (card.name, card.form, size, card.measures[0] if card.measures else "", card.title)
        for card, size in zip(cards, sizes, strict=True)
    ]
    head = ("name", "form", "questions", "main measure", "title")
    more = "All facts of one, licence and pitfalls among them: counterfoil list benchmarks NAME"
    plain = [card.model_dump(mode="json") for card in cards]
    return Listing(plain, head, rows, more)


@job(outputs="json")
def show_benchmark(name: Annotated[str | None, option(complete="benchmarks")] = None) -> Any:
    """Show all facts of a benchmark, such as licence, measures and pitfalls; without a name, list all.

    Example: counterfoil benchmarks show winoground

    Arguments:
        name: A benchmark; a TOML file or a folder names one's own.
    """
    return benchmarks(name)


@job(outputs="json")
def models() -> Listing:
    """List kinds of model: how each is written and what it needs.

    Example: counterfoil list models
    """
    entries = catalog.MODELS.values()

    def show(console: Console) -> None:
        for entry in entries:
            needs = f"; needs the extra '{entry.extra}'" if entry.extra else ""
            console.print(Text(f"{entry.prefix}:{entry.argument}", style="bold"))
            console.print(Padding(Text(entry.summary + needs), (0, 0, 0, 4)))
            console.print(Padding(Text(entry.example, style="dim"), (0, 0, 0, 4)))
            for row in described(entry.settings_class):
                facts = "; ".join(f"{key} {row[key]}" for key in ("allowed", "default") if row[key])
                words = f"--set {row['name']}=  {row['help']}" + (f" ({facts})" if facts else "")
                console.print(Padding(Text(words), (0, 0, 0, 8)))

    plain = [{**asdict(entry), "settings": described(entry.settings_class)} for entry in entries]
    return Listing(plain, show=show)


@job(outputs="json")
def metrics() -> Listing:
    """List caption metrics: inputs, needs and source.

    Example: counterfoil list metrics
    """
    from counterfoil.models.captions.registry import METRICS

    entries = METRICS.values()
    head = ("metric", "needs", "what it says", "source")
    rows = [(entry.name, ", ".join(entry.needs), entry.summary, entry.source) for entry in entries]
    more = "As a model each is written metric:NAME; 'bleu' stands for bleu-1 to bleu-4 in 'captions score'."
    plain = [asdict(entry) for entry in entries]
    return Listing(plain, head, rows, more)


@job(outputs="json")
def measures() -> Listing:
    """List measures with their question type and chance level.

    Example: counterfoil list measures
    """
    entries = every()
    head = ("measure", "form", "chance", "meaning")
    rows = [(measure.name, measure.form, measure.chance, measure.meaning) for measure in entries]
    more = "Of galleries with i2t_, t2i_ or mean_ before them, or without for all three; K is any number."
    plain = [measure.to_json() for measure in entries]
    return Listing(plain, head, rows, more)


@job(outputs="json")
def recipes(name: Annotated[str | None, option(complete="recipes")] = None) -> Listing:
    """List training recipes with the papers' values.

    Example: counterfoil list recipes trohn-img

    Arguments:
        name: Show all values of this one.
    """
    from counterfoil.train.recipes import RECIPES, read

    if name is None:
        entries = RECIPES.values()
        head = ("recipe", "what is learnt", "columns besides image and caption")
        rows = [(recipe.name, recipe.about, ", ".join(recipe.needs)) for recipe in entries]
        more = "All values of one, and what its paper leaves open: counterfoil list recipes NAME"
        plain = [asdict(recipe) for recipe in entries]
        return Listing(plain, head, rows, more)
    recipe = read(name)

    def show(console: Console) -> None:
        plan = imported("jobs.training:TrainingPlan")(recipe, recipe, {})
        imported("tables:show")(console, plan.tables)
        console.print(*plan.notes, sep="\n")

    return Listing(asdict(recipe), show=show)


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate forms
  counterfoil annotate forms best-of-k""",
)
def forms(name: Annotated[str | None, option(metavar="FORM")] = None) -> Listing:
    """List forms of work: what they ask and which columns their items need.

    Arguments:
        name: Show columns and settings of this one.
    """
    from counterfoil.annotate.forms.registry import WORK_FORMS

    if name is not None:
        facts = WORK_FORMS.find(name).facts
        return Listing(facts, show=partial(print_facts, facts=facts))
    entries = [WORK_FORMS[form_name] for form_name in WORK_FORMS]
    plain = [{"name": e.name, "columns": dict(e.kind.columns), "summary": e.summary} for e in entries]
    rows = [(e.name, ", ".join(e.kind.columns), e.summary) for e in entries]
    return Listing(plain, ("form", "columns", "what is asked"), rows)
