"""The dataset card of a release: a README whose header `datasets` and the hub read, and words for people."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.release import FormRelease
from counterfoil.benchmarks.publishing.facts import Publication
from counterfoil.benchmarks.publishing.tables import WrittenFile

_SIZES = (1_000, 10_000, 100_000, 1_000_000, 10_000_000)
_SIZE_NAMES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "n>10M")
#: So many groups of a grouping are listed.
_MOST_GROUPS = 30


def dataset_card(
    name: str,
    benchmark: Benchmark,
    release: FormRelease,
    files: Sequence[WrittenFile],
    about: Publication,
) -> str:
    """The README as text."""
    card = benchmark.card
    title = card.title or name
    config = f', "{release.tables[0].name}"' if len(release.tables) > 1 else ""
    people = list(about.provenance.people)
    opinions = benchmark.questions.opinions()
    if opinions is not None:
        kind, answers = opinions
        what = f"{answers.shape[1]} ratings" if kind == "ratings" else "votes"
        people.append(f"People gave {what} per question; they are in the tables as numbers, without names.")
    parts = [
        "---",
        *_yaml(_header(title, benchmark, release, files, about)),
        "---",
        "",
        f"# {title}",
        "",
        describe(benchmark, release),
        "",
        "## Composition",
        *_composition(benchmark, release, files),
        "## Process",
        *_process(benchmark, about),
        "## People",
        *_bullets(
            people,
            "Nothing is recorded of the people who wrote captions, checked questions or are seen in images.",
        ),
        "## Licences",
        *_licences(benchmark, about),
        "## Known limits",
        *_bullets(
            [*card.pitfalls, *about.provenance.limits],
            "Nobody has recorded any, which does not mean that there are none. `counterfoil audit` looks",
            "for answers that captions give away, for duplicates and for leakage.",
        ),
        "## Intended use",
        *_bullets(
            about.provenance.uses,
            "Measuring models that compare images and captions. A model that was trained on these questions",
            "cannot be measured with them.",
        ),
        "## How it is read",
        "",
        "```python",
        "import datasets",
        "",
        f'rows = datasets.load_dataset("{about.repository or "FOLDER"}"{config})',
        "```",
        "",
        "The folder is also a benchmark of counterfoil, which measures any scorer with it:",
        "",
        "    counterfoil evaluate SCORER FOLDER",
        "",
        "`checksums.sha256` has the digest of every file (`sha256sum -c checksums.sha256`), and",
        "`croissant.json` describes the files in the Croissant format.",
        "",
    ]
    if card.citation:
        parts += ["## Citation", "", card.citation, ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def describe(benchmark: Benchmark, release: FormRelease) -> str:
    """What is asked, and of how many questions, images and captions."""
    units = benchmark.questions.units
    return (
        f"{release.asks} {len(benchmark):,} {units}, {len(benchmark.images):,} images, "
        f"{len(benchmark.captions):,} captions."
    )


def _header(
    title: str,
    benchmark: Benchmark,
    release: FormRelease,
    files: Sequence[WrittenFile],
    about: Publication,
) -> dict[str, Any]:
    licence = about.licence
    other = (
        {"license_name": licence.spdx or "other", "license_link": licence.url}
        if licence.hub == "other"
        else {}
    )
    splits = {
        table.name: list(dict.fromkeys(f.split for f in files if f.table == table.name))
        for table in release.tables
    }
    folders = {(file.table, file.split): file.path.rpartition("/")[0] for file in files}
    main = max(len(table) for table in release.tables)
    size = _SIZE_NAMES[sum(main >= most for most in _SIZES)]
    return {
        "pretty_name": title,
        **({"language": [about.language]} if about.language else {}),
        "license": licence.hub,
        **other,
        "task_categories": list(release.tasks),
        "tags": ["benchmark", "counterfoil", benchmark.card.form],
        "size_categories": [size],
        "configs": [
            {
                "config_name": table.name,
                **({"default": True} if at == 0 and len(release.tables) > 1 else {}),
                "data_files": [
                    {"split": split, "path": f"{folders[table.name, split]}/{split}-*"}
                    for split in splits[table.name]
                ],
            }
            for at, table in enumerate(release.tables)
        ],
    }


def _yaml(value: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """Lines of YAML; texts are quoted as in JSON, which YAML reads alike."""
    for key, entry in value.items():
        if isinstance(entry, list):
            yield f"{indent}{key}:"
            for item in entry:
                if isinstance(item, Mapping):
                    first, *rest = _yaml(item, indent + "    ")
                    yield f"{indent}  - {first.strip()}"
                    yield from rest
                else:
                    yield f"{indent}  - {json.dumps(item, ensure_ascii=False)}"
        else:
            yield f"{indent}{key}: {json.dumps(entry, ensure_ascii=False)}"


def _composition(benchmark: Benchmark, release: FormRelease, files: Sequence[WrittenFile]) -> Iterator[str]:
    rows_of: dict[str, Counter[str]] = {table.name: Counter() for table in release.tables}
    for file in files:
        rows_of[file.table][file.split] += file.rows
    yield ""
    yield from _table(
        ("table", "split", "rows", "what a row is"),
        [
            (table.name, split, f"{rows:,}", table.about)
            for table in release.tables
            for split, rows in rows_of[table.name].items()
        ],
    )
    for table in release.tables:
        yield from _table(
            (f"column of {table.name}", "what it holds"),
            [(f"`{name}`", column.about) for name, column in table.columns.items()],
        )
    for grouping, labels in benchmark.questions.groupings.items():
        counts = Counter(label for label in labels if label)
        listed = ", ".join(f"{label} ({n:,})" for label, n in list(counts.items())[:_MOST_GROUPS])
        more = f" and {len(counts) - _MOST_GROUPS:,} more" if len(counts) > _MOST_GROUPS else ""
        yield f"By `{_plain(grouping)}`: {_plain(listed)}{more}."
        yield ""
    for name, fact in release.facts.items():
        yield f"`{name}`: {json.dumps(fact)}"
        yield ""
    missing = sum(image.source is None for image in benchmark.images)
    if missing:
        yield f"{missing:,} of {len(benchmark.images):,} images are named and not held here."
        yield ""


def _process(benchmark: Benchmark, about: Publication) -> Iterator[str]:
    provenance, card = about.provenance, benchmark.card
    yield ""
    if provenance.method:
        yield _plain(provenance.method)
    elif card.homepage or card.hub:
        place = card.homepage or f"https://huggingface.co/datasets/{card.hub}"
        at = f", revision {card.revision}" if card.revision else ""
        yield f"The questions are those of the release at {place}{at}, as counterfoil reads them."
    elif not provenance.steps:
        yield "How the questions were made is not recorded."
    yield ""
    if provenance.steps:
        yield from _table(
            ("step", "what it does", "settings", "rows in", "rows out", "dropped"),
            [
                (
                    step.name,
                    step.summary,
                    ", ".join(f"{key} = {json.dumps(value)}" for key, value in step.settings.items()),
                    "" if step.rows_in is None else f"{step.rows_in:,}",
                    "" if step.rows_out is None else f"{step.rows_out:,}",
                    ", ".join(f"{reason}: {n:,}" for reason, n in step.dropped.items()),
                )
                for step in provenance.steps
            ],
        )
    if provenance.rows is not None:
        yield "Who made what of each question, from what and with which seed, is in the columns that end in"
        yield "`_by`, `_from` and `_seed`."
        yield ""


def _bullets(texts: Sequence[str], *otherwise: str) -> Iterator[str]:
    """A list of the texts, or what is said where there are none."""
    yield ""
    yield from (f"* {_plain(text)}" for text in texts)
    if not texts:
        yield from otherwise
    yield ""


def _licences(benchmark: Benchmark, about: Publication) -> Iterator[str]:
    licence, card = about.licence, benchmark.card
    yield ""
    yield f"This data set: [{licence.spdx or licence.url}]({licence.url})."
    yield ""
    rows = [(entry.name, entry.licence or "not recorded", entry.url) for entry in about.provenance.sources]
    if card.licence:
        rows.insert(0, (card.title or card.name, card.licence, card.homepage))
    if rows:
        yield from _table(("source", "licence", "where"), rows)
    for entry in about.overridden:
        yield f"**Published although {_plain(entry)}.**"
        yield ""


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield "| " + " | ".join(columns) + " |"
    yield "|" + " --- |" * len(columns)
    for row in rows:
        yield "| " + " | ".join(_plain(cell).replace("|", "\\|") for cell in row) + " |"
    yield ""


def _plain(text: str) -> str:
    """A text in one line that opens no markup of a page."""
    return " ".join(text.split()).replace("<", "&lt;")
