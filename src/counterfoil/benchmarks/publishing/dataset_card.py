"""The dataset card of a release: a README whose header `datasets` and the hub read, and words for people."""

import json
from collections import Counter
from collections.abc import Sequence
from functools import partial
from importlib.resources import files as resources

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.release import FormRelease, ReleaseTable
from counterfoil.benchmarks.publishing.facts import Publication
from counterfoil.benchmarks.publishing.tables import WrittenFile

_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_SIZE_NAMES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "n>10M")
#: The most groups of a grouping that are listed.
_MOST_GROUPS = 30


def dataset_card(
    name: str, benchmark: Benchmark, release: FormRelease, files: Sequence[WrittenFile], about: Publication
) -> str:
    """The README as text."""
    from jinja2 import Environment, StrictUndefined

    card, provenance = benchmark.card, about.provenance
    rows_of: Counter[tuple[ReleaseTable, str]] = Counter()
    splits: dict[str, dict[str, str]] = {table.name: {} for table in release.tables}
    tables = {table.name: table for table in release.tables}
    for file in files:
        rows_of[tables[file.table], file.split] += file.rows
        splits[file.table][file.split] = file.path.rpartition("/")[0]
    people = list(provenance.people)
    opinions = benchmark.questions.opinions()
    if opinions is not None:
        kind, answers = opinions
        what = f"{answers.shape[1]} ratings" if kind == "ratings" else "votes"
        people.append(f"People gave {what} per question; they are in the tables as numbers, without names.")
    sources = [(entry.name, entry.licence or "not recorded", entry.url) for entry in provenance.sources]
    if card.licence:
        sources.insert(0, (card.title or card.name, card.licence, card.homepage))
    steps = [
        (
            step.name,
            step.summary,
            ", ".join(f"{key} = {json.dumps(value)}" for key, value in step.settings.items()),
            "" if step.rows_in is None else f"{step.rows_in:,}",
            "" if step.rows_out is None else f"{step.rows_out:,}",
            ", ".join(f"{reason}: {n:,}" for reason, n in step.dropped.items()),
        )
        for step in provenance.steps
    ]
    missing = sum(image.source is None for image in benchmark.images)
    environment = Environment(
        trim_blocks=True, lstrip_blocks=True, undefined=StrictUndefined, keep_trailing_newline=True
    )
    environment.filters |= {
        "plain": _plain,
        "cell": lambda text: _plain(text).replace("|", "\\|"),
        # Texts are quoted as in JSON, which YAML reads alike.
        "json": partial(json.dumps, ensure_ascii=False),
        "ascii": json.dumps,
    }
    template = resources("counterfoil.benchmarks.publishing").joinpath("dataset_card.md")
    return environment.from_string(template.read_text(encoding="utf-8")).render(
        title=card.title or name,
        summary=describe(benchmark, release),
        card=card,
        release=release,
        about=about,
        licence=about.licence,
        provenance=provenance,
        size=_SIZE_NAMES[sum(max(map(len, release.tables)) >= most for most in _SIZES)],
        splits=splits,
        rows=[(table.name, split, f"{n:,}", table.about) for (table, split), n in rows_of.items()],
        columns_of=lambda table: [(f"`{name}`", column.about) for name, column in table.columns.items()],
        groupings={name: _groups(labels) for name, labels in benchmark.questions.groupings.items()},
        missing=f"{missing:,}" if missing else "",
        images=f"{len(benchmark.images):,}",
        steps=steps,
        people=people,
        sources=sources,
    )


def describe(benchmark: Benchmark, release: FormRelease) -> str:
    """What is asked, and of how many questions, images and captions."""
    units = benchmark.questions.units
    return (
        f"{release.asks} {len(benchmark):,} {units}, {len(benchmark.images):,} images, "
        f"{len(benchmark.captions):,} captions."
    )


def _groups(labels: Sequence[str]) -> str:
    counts = Counter(label for label in labels if label)
    listed = ", ".join(f"{label} ({n:,})" for label, n in list(counts.items())[:_MOST_GROUPS])
    more = f" and {len(counts) - _MOST_GROUPS:,} more" if len(counts) > _MOST_GROUPS else ""
    return f"{listed}{more}"


def _plain(text: str) -> str:
    """A text in one line that opens no markup of a page."""
    return " ".join(text.split()).replace("<", "&lt;")
