"""The report as one HTML file that fetches nothing; tables and figures can be read without a script."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode

from counterfoil.benchmarks.forms import FORMS as QUESTIONS
from counterfoil.errors import InputError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Run
from counterfoil.report import comparison_tables, html, tables as labels
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.forms import FORMS, WORST, report_of
from counterfoil.report.html import shareable, shared
from counterfoil.report.tables import Column, Table
from counterfoil.report.thumbnails import BUDGET, Thumbnails, carried, richest, to_json


def page(
    comparisons: Sequence[Comparison],
    *,
    title: str = "Images and captions: which belong together?",
    pictures: str = "auto",
    budget: int = BUDGET,
    private: bool = False,
) -> str:
    """The whole report as HTML; `pictures` is one of `thumbnails.PICTURES`, `budget` bounds them in bytes."""
    if not comparisons:
        raise InputError("nothing to report", hint="give at least one run")
    thumbnails = Thumbnails(budget)
    data: dict[str, list[dict[str, Any]]] = {}
    chapters: list[dict[str, Any]] = []
    models: dict[str, list[dict[str, Any]]] = {}
    provenance = []
    for given in comparisons:
        comparison = given if private else shared(given)
        # Best first, so that tables stand in the order of the figures.
        order = ranking(comparison)
        runs = tuple(sorted(comparison.runs, key=lambda run: order.index(run.name)))
        comparison = replace(comparison, runs=runs)
        # A short name, safe in ids and addresses, none twice.
        plain = re.sub("[^a-z0-9]", "-", comparison.benchmark.lower()).strip("-") or "benchmark"
        anchor = f"b-{plain}" if f"b-{plain}" not in models else f"b-{plain}-{len(models)}"
        for run in runs:
            manifest = {key: value for key, value in run.manifest.items() if key != "questions"}
            facts = {"signature": run.result.signature(), **run.result.provenance, **manifest}
            provenance.append((run.benchmark.title, run.name, _flat(facts)))
        benchmark = comparison.runs[0].benchmark
        report = report_of(benchmark)
        captions, images, why = carried(benchmark, pictures)
        page_data = report.data(comparison, thumbnails, pictures=images, captions=captions)
        data.setdefault(report.key, []).append({**page_data, "anchor": anchor})
        chapters.append(report.chapter(comparison, anchor, _about_pictures(page_data, why)))
        models[anchor] = model_sections(comparison, anchor, captions=captions)
    # One browser for all forms whose questions stand in one place.
    forms = {comparison.runs[0].benchmark.questions.form for comparison in comparisons}
    shown = {report.place: report for report in (FORMS[name] for name in FORMS if name in forms)}
    broken = thumbnails.broken
    if not private:
        broken = {shareable(name): shareable(why) for name, why in broken.items()}
    return html.render(
        "page.html",
        title=title,
        styles=("page.css", *(report.style for report in shown.values() if report.style)),
        scripts=("browser.js", *(report.script for report in shown.values())),
        contents=[
            *((chapter["anchor"], chapter["benchmark"].card.title) for chapter in chapters),
            *((place, place.capitalize()) for place in [*shown, "provenance"]),
        ],
        chapters=chapters,
        models=models,
        links={anchor: {model["name"]: model["anchor"] for model in of} for anchor, of in models.items()},
        browsers={
            place: [chapter for chapter in chapters if chapter["report"].place == place] for place in shown
        },
        provenance=provenance,
        broken=broken,
        data=to_json({**data, "pictures": thumbnails.uris}),
    )


def model_sections(comparison: Comparison, anchor: str, *, captions: bool) -> list[dict[str, Any]]:
    """The models of `comparison`, in its order, each with its groups and worst questions as (id, how bad,
    captions, address); captions are written out where `captions` allows it.
    """
    benchmark = richest(comparison)
    report = report_of(benchmark)
    sections = []
    for number, run in enumerate(comparison.runs):
        order, how = report.failures(run)
        address, worst = {"b": anchor, "model": run.name}, []
        for q in order[:WORST]:
            name, rows = benchmark.questions.ids[q], benchmark.questions.captions_of(q)[:4]
            texts = tuple(text for row in rows if captions and (text := benchmark.captions[row].text))
            worst.append((name, how[q], texts, f"#{report.place}?{urlencode({**address, 'text': name})}"))
        key, all_of_them = f"{anchor}-model-{number}", f"#{report.place}?{urlencode(address)}"
        about = {"anchor": key, "name": run.name, "address": all_of_them}
        sections.append({**about, "groups": group_table(run), "worst": worst})
    return sections


def group_table(run: Run) -> Table:
    """A row per group of every grouping, all questions first; a column per main measure, with intervals."""
    main = comparison_tables.main_measures(Comparison(run.benchmark.name, (run,), None, ()))
    columns = [
        Column(
            labels.measure_label(name),
            style=labels.style_of(name),
            measure=name,
            signature=run.result.signature(name),
        )
        for name in main
    ]
    units = run.benchmark.questions.units
    of_groupings = comparison_tables.groupings(run.benchmark.questions).values()
    keys = dict.fromkeys(key for of in of_groupings for key in of)
    groups = [(labels.group(key), run.result.groups[key]) for key in keys if key in run.result.groups]
    rows = []
    for name, measures in [(f"all {units}", run.result.measures), *groups]:
        estimates = [measures.get(measure) for measure in main]
        n = max((estimate.n for estimate in estimates if estimate is not None), default=0)
        rows.append((name, f"{n:,}", *estimates))
    caption = f"{run.name} by group on {run.benchmark.title}."
    return Table.of(caption, "Group", [units, *columns], rows)


def _about_pictures(data: Mapping[str, Any], left_out: str) -> str:
    n, pictured = len(data["ids"]), data["pictured"]
    many = QUESTIONS[data["form"]].units
    sampled = ""
    if data.get("of", n) > n > 0:
        with_ = f"{many} with a right answer" if many == "queries" else many
        sampled = f"Of {data['of']:,} {with_} {n:,} are here as a sample of all groups or directions. "
    if left_out:
        return f"{sampled}{left_out}"
    if not pictured:
        return f"{sampled}The images were not at hand; compare --images FOLDER shows them."
    if pictured < n:
        return (
            f"{sampled}To keep the file small, {pictured:,} of {n:,} {many} have their pictures: "
            f"some of every {'direction' if many == 'queries' else 'group'} and kind of failure."
        )
    return sampled.strip()


def _flat(value: object, prefix: str = "") -> list[tuple[str, str]]:
    """Nested values as rows of dotted names: `{"a": {"b": 1}}` is `[("a.b", "1")]`; empty ones go."""
    if isinstance(value, Mapping):
        inside = {f"{prefix}.{key}" if prefix else str(key): inner for key, inner in value.items()}
        return [row for key, inner in inside.items() for row in _flat(inner, key)]
    if isinstance(value, list | tuple):
        text = " ".join(str(part) for part in value)
    else:
        text = "" if value is None else str(value)
    return [(prefix, text)] if text else []
