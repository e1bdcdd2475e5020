"""Tables of an audit, and its page: one HTML file that fetches nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from counterfoil.evaluation.audit import SAME_WORDS, BenchmarkAudit, above_chance
from counterfoil.evaluation.evaluate import of
from counterfoil.report.html import Section, shareable
from counterfoil.report.tables import Cell, Column, Row, Table, amount, measure_label, style_of

#: Words that are shown; files have all of them.
MOST_WORDS = 25
#: Groups that are shown where the benchmark's authors name no groupings.
_MOST_GROUPS = 24
#: Words with an example on the page.
_EXAMPLES = 10


def _table(
    audit: BenchmarkAudit,
    caption: str,
    corner: str,
    columns: Sequence[Column | str],
    rows: Sequence[Sequence[object]],
    chance: Sequence[float | None] = (),
) -> tuple[Table, ...]:
    """A table of one benchmark, with a last row of `chance` where it is given; none without rows."""
    if not rows:
        return ()
    table = Table.of(f"{audit.benchmark.title}: {caption}", corner, columns, rows)
    last = (Row("chance", tuple(map(Cell.of, chance)), "chance"),) if chance else ()
    return (replace(table, rows=(*table.rows, *last)),)


def groups_table(audit: BenchmarkAudit) -> tuple[Table, ...]:
    """The first main measure by group, a column per model; none where there are no groups."""
    groupings = audit.benchmark.questions.groupings
    # Those that the benchmark's authors report by, and the questions of the same words.
    named = [name for name in audit.benchmark.card.groupings if name in groupings] or list(groupings)[:2]
    groups = list(dict.fromkeys(label for name in named for label in groupings[name] if label))[:_MOST_GROUPS]
    if SAME_WORDS not in groups and any(SAME_WORDS in labels for labels in groupings.values()):
        groups.append(SAME_WORDS)
    measures = of(audit.benchmark).main_measures(audit.benchmark)
    main = next((name for name in measures if name in audit.blind[0]), None) if audit.blind else None
    if main is None:
        return ()
    columns = [Column(result.model.removeprefix("blind:"), measure=main) for result in audit.blind]
    rows = []
    for name in (name for name in groups if any(name in result.groups for result in audit.blind)):
        estimates = [result.groups.get(name, {}).get(main) for result in audit.blind]
        n = next((estimate.n for estimate in estimates if estimate is not None), 0)
        rows.append((f"{name} ({n:,})", *estimates))
    return _table(audit, f"{measure_label(main)} by group", "group", columns, rows)


def blind_section(audit: BenchmarkAudit) -> Section:
    """The main measures of every model that sees no image, with chance, and the first of them by group."""
    main = of(audit.benchmark).main_measures(audit.benchmark)
    names = [name for name in main if any(name in result for result in audit.blind)]
    columns = [Column(measure_label(name), style=style_of(name), measure=name) for name in names]
    rows = [(result.model, *(result.measures.get(name) for name in names)) for result in audit.blind]
    chance = [next(result[name].chance for result in audit.blind if name in result) for name in names]
    # How often each model puts caption 0 first, where each caption is right of an image of its own.
    first = [Column("caption 0 first")]
    apart = [*audit.told_apart.items()]
    orders = _table(audit, "caption 0 told from caption 1", "model", first, apart, [0.5])
    models = _table(audit, "models that see no image", "model", columns, rows, chance)
    return Section(
        "blind",
        "Answers without the image",
        "Each model reads captions alone; a tie counts its chance. Those that learn are "
        "cross-validated by cluster: what answers a question was learned from questions that share no "
        "image or caption with it. A model is called above or below chance if it is so after Holm's "
        "correction over all models and measures. By sum a language model finds shorter captions likelier; "
        "by mean it does not.",
        tables=(*models, *orders, *groups_table(audit)),
    )


def words_section(audit: BenchmarkAudit) -> Section:
    """The words that give answers away, surest first, and a question for each of the first ones."""
    benchmark, named = audit.benchmark, audit.named[:MOST_WORDS]
    heads = ("says", "right only", "wrong only", "correct", "p (adjusted)")
    rows = []
    for word in named:
        p = "<0.0001" if word.p_adjusted < 1e-4 else f"{word.p_adjusted:.4f}"
        counts = f"{word.right:,}", f"{word.wrong:,}", f"{100 * word.precision:.1f} %"
        rows.append((word.word, "right" if word.right > word.wrong else "wrong", *counts, p))
    more = len(audit.named) - len(named)
    caption = "words that give answers away" + (f" ({more} more in files)" if more else "")
    # The right and the wrong caption of a question, or its id.
    examples: list[tuple[str, str]] = []
    candidates = benchmark.questions.caption_candidates()
    for word in named[:_EXAMPLES]:
        if candidates is None:
            break
        example, text = word.examples[0], benchmark.questions.ids[word.examples[0]]
        if benchmark.card.redistributable:
            # One right and one wrong caption, of which one alone has the word.
            chosen: dict[bool, str] = {}
            for row in (candidates.question == example).nonzero()[0].tolist():
                caption_text = benchmark.captions[int(candidates.caption[row])].text or ""
                chosen.setdefault(bool(candidates.truth[row] > 0.5), caption_text)
            text = f"right: {chosen[True]} – wrong: {chosen[False]}"
        examples.append((word.word, text))
    return Section(
        "words",
        "Words that give answers away",
        "Of a right and a wrong caption one alone has the word. Sign tests of clusters; the chance of "
        f"naming any word of a benchmark without artefacts is at most {audit.level:.0%}.",
        tables=_table(audit, caption, "word", heads, rows),
        notes=tuple(examples),
    )


def sections(audit: BenchmarkAudit) -> list[Section]:
    """The parts of the page on one benchmark that have a table."""
    # How often each kind of repetition occurs, and what it is, with an example where there is one.
    counts = [(repetition.kind, f"{repetition.count:,}") for repetition in audit.repeated]
    kinds = []
    for repetition in audit.repeated:
        shown = repetition.examples[:1] if audit.benchmark.card.redistributable else ()
        example = f"; such as {' – '.join(shown[0])}" if shown else ""
        kinds.append((repetition.kind, repetition.meaning + example))
    table = _table(audit, "duplicates", "what", ["count"], counts)
    duplicates = Section("duplicates", "Duplicates", tables=table, notes=tuple(kinds))
    rows = []
    for leak in audit.leakage:
        total, exact, near, images = map("{:,}".format, (leak.total, leak.questions, leak.near, leak.images))
        rows.append((shareable(leak.with_), total, exact, near, f"{100 * leak.share:.1f} %", images))
    heads = ("questions", "caption in both", "nearly", "share", "images in both")
    leakage = Section(
        "leakage",
        "Shared with other sets",
        "Questions with a caption that is in both, word for word or nearly, and names of images in both.",
        tables=_table(audit, "shared with", "with", heads, rows),
    )
    parts = (blind_section(audit), words_section(audit), duplicates, leakage)
    return [section for section in parts if section.tables]


def tables(audit: BenchmarkAudit) -> list[Table]:
    """All tables of one benchmark, in the order of the page."""
    return [table for section in sections(audit) for table in section.tables]


def lead(audit: BenchmarkAudit) -> str:
    """What matters most, in a sentence or two."""
    parts = []
    above = audit.above_chance
    below = above_chance(audit.blind, *of(audit.benchmark).main_measures(audit.benchmark), above=False)
    if audit.blind and not above:
        names = ", ".join(result.model for result in audit.blind)
        parts.append(f"None of {names} is significantly above chance over all questions (p ≥ 0.05, Holm).")
    farthest = [("above", *pair) for pair in above[:1]] + [("below", *pair) for pair in below[:1]]
    for side, model, measure in farthest:
        value = next(result[measure] for result in audit.blind if result.model == model)
        scale = "" if style_of(measure) == "correlation" else " %"
        # Of two candidates the opposite answers are right where these are wrong.
        leak = f"; the opposite answers get {100 * (1 - value.value):.1f} %" if value.chance == 0.5 else ""
        chance = f"{side} chance ({100 * (value.chance or 0):.1f}{leak if side == 'below' else ''})"
        parts.append(
            f"Without looking, {model} gets {measure_label(measure)} {100 * value.value:.1f}{scale} "
            f"({100 * value.low:.1f} to {100 * value.high:.1f}), {chance}."
        )
    if audit.artefacts:
        words = ", ".join(f"“{word.word}”" for word in audit.named[:5]) + ", …" * (len(audit.named) > 5)
        tested = f"of {amount(len(audit.artefacts), 'word')} tested"
        many = f"{len(audit.named):,} {tested} give answers away: {words}."
        parts.append(many if words else f"None {tested} gives answers away.")
    if audit.same_words:
        parts.append(f"In {amount(audit.same_words, 'question')} captions have the same words, reordered.")
    return " ".join(parts)


def chapters(audits: Sequence[BenchmarkAudit]) -> list[tuple[Any, ...]]:
    """What templates show of each audit, without local paths in the names of models and in notes."""
    rows = []
    for number, given in enumerate(audits):
        audit = replace(
            given,
            blind=tuple(replace(result, model=shareable(result.model)) for result in given.blind),
            told_apart={shareable(name): value for name, value in given.told_apart.items()},
            notes=tuple(map(shareable, given.notes)),
        )
        key, size = f"benchmark-{number}", len(audit.benchmark)
        rows.append((key, audit.benchmark.title, size, lead(audit), sections(audit), audit.notes))
    return rows
