"""The report of a build: its funnel, rows kept and dropped by every step, and audits before and after."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import choices
from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.run import Build, BuildRecipe
from counterfoil.build.step import REASON, StepContext
from counterfoil.build.steps.registry import STEPS
from counterfoil.errors import DataError
from counterfoil.evaluation.audit import BenchmarkAudit
from counterfoil.jobs.audit import audit
from counterfoil.jobs.job import Feedback
from counterfoil.report.build_page import RowExample, StepSection, build_page, counts_table

#: Rows that are shown of each step: kept, dropped per reason, and dropped in all.
_KEPT, _PER_REASON, _DROPPED = 4, 2, 12
#: Questions that are audited, of larger builds.
_AUDITED = 4000


def report(recipe: BuildRecipe, build: Build, work: StepContext, *, command: str, feedback: Feedback) -> str:
    """The page as HTML. Of builds of more than 4,000 rows the audits are of 4,000, evenly spread."""
    steps = []
    for record, artefact in zip(build.records, build.folders, strict=True):
        rows, dropped, order = artefact.rows(), artefact.dropped(), list[int]()
        if len(dropped):
            reasons = np.array(dropped[REASON].to_pylist())
            for reason in record.dropped:
                order += np.flatnonzero(reasons == reason)[:_PER_REASON].tolist()
        spread = np.linspace(0, max(0, len(rows) - 1), min(_KEPT, len(rows))).round().astype(int)
        settings = {
            name: ", ".join(map(str, value if isinstance(value, list) else [value]))
            for name, value in record.settings.items()
        }
        settings |= {name: "" for name, value in record.settings.items() if value is None}
        section = StepSection(
            record.label,
            STEPS[record.step].summary if record.step in STEPS else "",
            record.rows_in,
            record.rows_out,
            record.dropped,
            settings,
            record.facts,
            tuple(_example(rows, int(at), work) for at in dict.fromkeys(spread.tolist())),
            tuple(_example(dropped, at, work) for at in order[:_DROPPED]),
        )
        steps.append(section)
    last = build.folders[-1].rows()
    paired = {"caption", "negative_caption"}.issubset(last.column_names)
    audits: list[BenchmarkAudit] = []
    if paired:
        first = next(
            rows
            for rows in (artefact.rows() for artefact in build.folders)
            if {"caption", "negative_caption"}.issubset(rows.column_names)
        )
        named = [("as assembled", last)]
        if first["id"].to_pylist() != last["id"].to_pylist():
            named.insert(0, ("before the first row was dropped", first))
        quiet = replace(feedback, remark=feedback.note)
        # Each by itself: the tables share rows, and that is no leakage.
        for title, rows in named:
            audits += audit(
                _choices(title, rows),
                pictures=False,
                limit=_AUDITED,
                draws=1000,
                seed=work.seed,
                cache=work.session.folder,
                batch_size=work.session.batch_size,
                workers=0,
                feedback=quiet,
            ).audits
    # What was built, by category and by how often an image occurs.
    tables = []
    if "subset" in last.column_names:
        counts = Counter(name or "" for name in last["subset"].to_pylist())
        tables.append(counts_table("Rows by category", counts, corner="category"))
    if "image" in last.column_names:
        uses = Counter(map(str, Counter(name or "" for name in last["image"].to_pylist()).values()))
        tables.append(counts_table("Images by how many rows they have", uses, corner="rows of an image"))
    return build_page(
        recipe.title,
        steps,
        about=recipe.summary,
        command=command,
        right=last["caption"].to_pylist() if paired else (),
        wrong=last["negative_caption"].to_pylist() if paired else (),
        tables=tables,
        audits=audits,
    )


def _example(rows: pa.Table, at: int, work: StepContext) -> RowExample:
    row = rows.slice(at, 1).to_pylist()[0]
    images = {}
    for column in IMAGE_ROLES:
        cell = row.get(column)
        if cell:
            try:
                images[column] = Image(cell, FileSource(work.image_file(cell)))
            except DataError:
                continue
    originals = [f"{role}_original" for role in CAPTION_ROLES if row.get(f"{role}_original") != row.get(role)]
    texts = {name: row[name] for name in (*CAPTION_ROLES, *originals, "subset") if row.get(name)}
    return RowExample(
        str(row["id"]),
        {name.replace("_", " "): str(text) for name, text in texts.items()},
        images,
        str(row.get(REASON) or ""),
    )


def _choices(title: str, rows: pa.Table) -> Benchmark:
    """Rows as choices between their captions, without any image at hand."""
    ids = rows["id"].to_pylist()
    shown = rows["image"].to_pylist() if "image" in rows.column_names else [None] * len(rows)
    images = [Image(cell or name, None, photo="") for cell, name in zip(shown, ids, strict=True)]
    groupings = {
        name: tuple(cell or "" for cell in rows[name].to_pylist())
        for name in ("subset",)
        if name in rows.column_names
    }
    card = Card(
        name=title.replace(" ", "-"),
        title=title[0].upper() + title[1:],
        form="choice",
        size=len(rows),
        measures=("accuracy",),
        groupings=tuple(groupings),
    )
    captions = rows["caption"].to_pylist(), rows["negative_caption"].to_pylist()
    return choices(card, ids, captions, images, groupings, source="rows of a build")
