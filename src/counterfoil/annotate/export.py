"""Tables of a campaign that other commands read, by its form of work.

    best-of-k        choices.csv    `build choose --people`: of, chosen, annotator
    which-image      answers.csv    `build filter --people`: id, answer (yes: the own image fits), annotator
    quad-validation  answers.csv    the same, yes where each caption fits its own image better
    match            gains.csv      `pool bias --judgements`: the pool's rows with the gain of their label
    choose           outcomes.csv   `evaluate given:`: the share of right answers, by direction
    preference       votes.csv      `annotate preferences`: winner, loser, judge
    rating           ratings.csv    `evaluate MODEL ratings --data`: image, caption, rating_1, rating_2, …
    quad-authoring   rows.csv       `build winoground --from`, `evaluate MODEL pairs --data`
    error-spans      spans.csv      item, start, end, label, text

Beside these every campaign has its judgements and, where its main question is answered by one option, the
labels (with `not_visible`, how many could not see an item, where anybody could not); where answers have a
worth (`WORTH`) also scores.csv, for `evaluate people:` and `given:`: the id, the mean over people (of yes-
no the share of yes) and the number of answers. People are the hashes that only this campaign has; without
people even these are left out.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.annotate.agreement import counted, fields_of
from counterfoil.annotate.campaign import CONSENT, INSTRUCTIONS, Campaign
from counterfoil.annotate.forms.base import NOT_VISIBLE
from counterfoil.annotate.forms.builtin import FIRST, NONE, OWN, POSITIVE, SAME, SECOND
from counterfoil.annotate.items import QUAD_KINDS
from counterfoil.annotate.judgement_table import Submissions, answer_value
from counterfoil.annotate.labels import ItemLabels, Partly, item_labels, merged_gains
from counterfoil.benchmarks.judgements import gain_of
from counterfoil.inputs.files import digest

#: What says that a folder is an export, and of which campaign; what says who the people were.
ABOUT, DATA_SHEET = "export.json", "data_sheet.md"
#: Columns of a table of judgements that say who it was, or lead to it.
_WHO = ("person", "submitted", "comment")
#: What an answer to a form counts as in the score of an item, where it is neither a number nor has a gain.
WORTH: Mapping[str, Mapping[str, float]] = {
    "match": {},
    "rating": {},
    "yes-no": {"yes": 1.0, "no": 0.0},
    "error-spans": {"right": 1.0, "wrong": 0.0},
}
#: The answers by which a question is accepted, by form.
_ACCEPTED: Mapping[str, Mapping[str, str]] = {
    "which-image": {"answer:fits": OWN},
    "quad-validation": {"answer:first_image": FIRST, "answer:second_image": SECOND},
}
#: The table of each form of which an answer is one row, or several: its name and columns.
_COLUMNS: Mapping[str, tuple[str, str]] = {
    "best-of-k": ("choices", "of chosen annotator seconds"),
    **dict.fromkeys(_ACCEPTED, ("answers", "id answer annotator seconds")),
    "preference": ("votes", "winner loser judge seconds"),
    "error-spans": ("spans", "item start end label text annotator"),
}
#: Single directions as tables of outcomes call them, by kind of item.
_DIRECTIONS = dict(zip(QUAD_KINDS, ("ipos2t", "ineg2t", "tpos2i", "tneg2i"), strict=True))


@dataclass(frozen=True, eq=False)
class JudgedCampaign:
    """A campaign, its judgements that count and those of an item that was `unseen`, and its labels."""

    campaign: Campaign
    judgements: pa.Table
    labels: ItemLabels | None
    unseen: pa.Table

    @classmethod
    def of(
        cls,
        campaign: Campaign,
        table: pa.Table,
        *,
        model: str | None = "one-coin",
        adjudicated: Mapping[tuple[str, str], str] | None = None,
    ) -> "JudgedCampaign":
        """With labels by a model, if any."""
        main = fields_of(campaign)[campaign.form.main]
        labels = None
        if model is not None and main.kind == "one" and campaign.form.name != "quad-authoring":
            labels = item_labels(table, main, model=model, adjudicated=adjudicated)
        unseen = table.filter(pc.equal(table.column("answer"), NOT_VISIBLE))
        return cls(campaign, counted(table), labels, unseen.filter(pc.is_null(unseen.column("golden"))))

    def answers(self) -> list[dict[str, Any]]:
        """A dict per item and person: `item`, `person`, `seconds` and the answers by question."""
        by_pair: dict[tuple[str, str], dict[str, Any]] = {}
        for row in self.judgements.to_pylist():
            facts = {name: row[name] for name in ("item", "person", "seconds")}
            one = by_pair.setdefault((row["item"], row["person"]), facts)
            one[f"answer:{row['question']}"] = row["answer"]
        return list(by_pair.values())

    def facts(self) -> dict[str, Any]:
        """Whose answers they are, as an export says it of itself."""
        counts = {"people": len(self.judgements["person"].unique()), "answers": len(self.main_answers())}
        return {"campaign": self.campaign.digest, "form": self.campaign.form.name, **counts}

    def main_answers(self) -> list[tuple[str, str, float | None, str]]:
        """(item, person, seconds, answer to the main question) in order."""
        main = f"answer:{self.campaign.form.main}"
        return [(a["item"], a["person"], a["seconds"], a[main]) for a in self.answers() if main in a]

    def cells(self, item: str) -> Mapping[str, Any]:
        """The cells of an item by its id."""
        return self.campaign.items[self.campaign.positions[item]].cells

    def source(self) -> dict[str, list[dict[str, Any]]]:
        """The rows that each item is of; none where the campaign kept none."""
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in () if self.campaign.source is None else self.campaign.source.to_pylist():
            rows.setdefault(row["item"], []).append(row)
        return rows


def exported(judged: JudgedCampaign, *, partly: Partly = "half", people: bool = True) -> dict[str, pa.Table]:
    """The tables of a campaign by file name; without `people` none says who answered, nor when."""
    table = pa.concat_tables([judged.judgements, judged.unseen])
    if not people:
        table = table.drop_columns([name for name in _WHO if name in table.column_names])
        table = table.sort_by([("item", "ascending"), ("question", "ascending"), ("answer", "ascending")])
    tables = {"judgements": table}
    if judged.labels is not None:
        tables["labels"] = labels = judged.labels.table
        if len(judged.unseen):
            # With how many people could not see each item, and items that none of them could see.
            blind = Counter(judged.unseen.column("item").to_pylist())
            rows = [{**row, "not_visible": blind.pop(row["item"], 0)} for row in labels.to_pylist()]
            common = {"question": rows[0]["question"], "label": NOT_VISIBLE, "answers": 0, "decided": False}
            rows += [{"item": item, **common, "not_visible": n} for item, n in blind.items()]
            schema = labels.schema.append(pa.field("not_visible", pa.int64()))
            tables["labels"] = pa.Table.from_pylist(rows, schema)
    tables |= _own_tables(judged, partly)
    if judged.campaign.form.name in WORTH:
        tables["scores"] = mean_scores(judged)
    hidden = () if people else ("annotator", "judge", "author")
    return {
        name: table.drop_columns([who for who in hidden if who in table.column_names])
        for name, table in tables.items()
    }


def _table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> pa.Table:
    """Rows as a table of these columns, texts but for numbers."""
    arrays = {}
    for name in columns:
        cells = [row.get(name) for row in rows]
        number = bool(cells) and all(cell is None or isinstance(cell, int | float) for cell in cells)
        arrays[name] = pa.array(cells) if number else pa.array(cells, pa.string())
    return pa.table(arrays)


def _own_tables(judged: JudgedCampaign, partly: Partly) -> dict[str, pa.Table]:
    form, source = judged.campaign.form.name, judged.source()
    if form == "match":
        return _judged_pool(judged, partly)
    if form == "quad-authoring":
        return {"rows": authored_rows(judged)}
    if form == "choose":
        # Of the answers, whatever labels they make; none where no right answer is known.
        shares = question_outcomes(replace(judged, labels=None)).table
        return {"outcomes": shares} if len(shares) else {}
    if form == "rating":
        rated: dict[str, dict[str, Any]] = {}
        for item, _, _, grade in judged.main_answers():
            shown = {name: judged.cells(item)[name] for name in ("image", "caption")}
            row = rated.setdefault(item, {"id": item, **shown})
            row[f"rating_{len(row) - 2}"] = float(grade)
        columns = max(rated.values(), key=len, default=("id", "image", "caption", "rating_1"))
        return {"ratings": _table(list(rated.values()), tuple(columns))}
    if form not in _COLUMNS:
        return {}
    table, columns_of = _COLUMNS[form]
    rows: list[dict[str, Any]] = []
    for given in judged.answers():
        item, answer = given["item"], given.get(f"answer:{judged.campaign.form.main}")
        cells, its = judged.cells(item), source.get(item, [])
        row = {"id": item, "item": item, "seconds": given["seconds"]}
        row |= dict.fromkeys(("annotator", "judge"), given["person"])
        if table == "choices" and answer is not None:
            chosen = None
            if answer != NONE:
                i = int(answer)
                # Of candidates of a build each has a row; of a table of one's own the row has all images.
                chosen = str(its[i].get("id")) if len(its) > i and "of" in its[i] else f"{item}#{i}"
            rows.append({**row, "of": its[0]["of"] if its and its[0].get("of") else item, "chosen": chosen})
        elif table == "votes" and answer not in (None, SAME):
            winner, loser = (FIRST, SECOND) if answer == FIRST else (SECOND, FIRST)
            rows.append({**row, "winner": cells[winner], "loser": cells[loser]})
        elif table == "spans":
            spans = answer_value(given.get("answer:errors", "[]"), "spans")
            rows += [{**row, **of, "text": cells["caption"][of["start"] : of["end"]]} for of in spans]
        elif table == "answers":
            rows.append({**row, "answer": "yes" if _ACCEPTED[form].items() <= given.items() else "no"})
    return {table: _table(rows, columns_of.split())}


def _judged_pool(judged: JudgedCampaign, partly: Partly) -> dict[str, pa.Table]:
    source = judged.source()
    if not all({"direction", "image", "caption"} <= set(row) for rows in source.values() for row in rows):
        return {}
    source_columns = [] if judged.campaign.source is None else judged.campaign.source.column_names
    columns = [name for name in source_columns if name != "item"]
    labels = judged.labels
    assert labels is not None
    gains = merged_gains(labels, partly).tolist()
    positive = [i for i, value in enumerate(labels.values) if value in POSITIVE]
    chances = labels.posterior[:, positive].sum(axis=1).tolist()
    merged = [
        {**row, "gain": gain, "posterior": chance}
        for item, gain, chance in zip(labels.items, gains, chances, strict=True)
        for row in (source.get(item, []) if gain == gain else ())
    ]
    return {"gains": _table(merged, (*columns, "gain", "posterior"))}


def mean_scores(judged: JudgedCampaign) -> pa.Table:
    """A score per item, the mean over people: of yes, of right, of the gain, or of the rating."""
    worth = WORTH[judged.campaign.form.name]
    sums: dict[str, list[float]] = {}
    for item, _, _, answer in judged.main_answers():
        value = worth[answer] if answer in worth else gain_of(answer)
        sums.setdefault(item, []).append(float(answer) if value is None else value)
    rows = [
        {"id": item, "score": sum(values) / len(values), "answers": len(values)}
        for item, values in sums.items()
    ]
    return _table(rows, ("id", "score", "answers"))


@dataclass(frozen=True, eq=False)
class QuestionOutcomes:
    """The share of right answers to each query; `unknown` queries have no known right answer."""

    table: pa.Table
    queries: int
    tied: int
    unknown: int


def question_outcomes(judged: JudgedCampaign) -> QuestionOutcomes:
    """The mean over the answers to each query of `choose`, or the label, a tie by its chances."""
    answers_of: dict[str, list[str]] = {}
    for name, _, _, answer in judged.main_answers():
        answers_of.setdefault(name, []).append(answer)
    by_question: dict[str, dict[str, Any]] = {}
    tied, labels = 0, judged.labels
    positions = {} if labels is None else {name: i for i, name in enumerate(labels.items)}
    items = {name: judged.campaign.items[judged.campaign.positions[name]] for name in answers_of}
    with_truth = {name: item for name, item in items.items() if item.truth}
    for name, item in with_truth.items():
        answers, right = answers_of[name], item.truth.split("|")
        share = sum(answer in right for answer in answers) / len(answers)
        if labels is not None:
            label, chances = labels.labels[positions[name]], labels.posterior[positions[name]].tolist()
            chance = sum(p for value, p in zip(labels.values, chances, strict=True) if value in right)
            share = float(label in right) if label else chance
        most = sorted(map(answers.count, set(answers)))[-2:]
        tied += len(most) == 2 and most[0] == most[1]
        column = _DIRECTIONS.get(item.kind, "accuracy")
        by_question.setdefault(item.exclusion_group, {"id": item.exclusion_group})[column] = share
    directed = all(item.kind in _DIRECTIONS for item in with_truth.values())
    columns = tuple(_DIRECTIONS.values()) if directed else ("accuracy",)
    table = _table([*by_question.values()], ("id", *columns))
    return QuestionOutcomes(table, len(with_truth), tied, len(items) - len(with_truth))


def authored_rows(judged: JudgedCampaign) -> pa.Table:
    """A row per quad that a person wrote: its captions, the images that were picked, tags and the author."""
    rows = []
    for i, answer in enumerate(judged.answers()):
        images = judged.cells(answer["item"]).get("images") or []
        positions = (answer.get(f"answer:{which}_image") for which in ("first", "second"))
        first, second = (None if place is None else images[int(place)] for place in positions)
        rows.append(
            {
                "id": f"{answer['item']}/{i}",
                "caption": answer["answer:first_caption"],
                "negative_caption": answer["answer:second_caption"],
                "image": first,
                "negative_image": second,
                "subset": answer.get("answer:swap"),
                "predicates": answer.get("answer:predicates"),
                "visual": ",".join(answer_value(answer.get("answer:visual", "[]"), "many")),
                "author": answer["person"],
            }
        )
    names = ("id", "caption", "negative_caption", "image", "negative_image", "subset", "predicates", "visual")
    return _table(rows, (*names, "author"))


def data_sheet(campaign: Campaign, table: pa.Table) -> tuple[str, ...]:
    """How many people judged what, how often, for what pay and in what time, and by which instructions."""
    done = Submissions.of(table)
    title = campaign.recipe.title
    if not done.counts.any():
        return (f"Campaign “{title}”: no answers.",)
    per_item = done.per_item[done.per_item > 0]
    people = np.unique(done.person[done.counts])
    who = "one person" if len(people) == 1 else f"{len(people):,} people"
    lines = [
        f"Campaign “{title}”: {who} judged {len(per_item):,} items ({campaign.form.summary}), "
        f"{np.median(per_item):g} per item in the median, {int(done.counts.sum()):,} answers in all."
    ]
    pay, hourly = campaign.pay, done.hourly(campaign.pay.per_item)
    if np.isnan(hourly).all():
        lines.append(f"Pay was set at {pay.currency} {pay.terms}; no times are known.")
    else:
        lines.append(
            f"Pay came to {pay.currency} {np.nanmedian(hourly):.2f} per hour of work in the median of people "
            f"(set at {pay.terms}); an item took {np.nanmedian(done.seconds):.1f} s in the median."
        )
    if not np.isnan(done.submitted).all():
        ends = np.nanmin(done.submitted), np.nanmax(done.submitted)
        first, last = (datetime.fromtimestamp(float(i), UTC).date().isoformat() for i in ends)
        days = f"on {first}" if first == last else f"from {first} to {last}"
        # The clock of a simulation begins at 0.
        lines.append("Answered by simulated people." if first == "1970-01-01" else f"Answered {days}.")
    right, gold = (int(counts.sum()) for counts in done.golden_of)
    if gold:
        share = 100 * right / gold
        lines.append(f"Of {gold:,} answers to items of known answer {share:.1f} % were right.")
    for name, file, of in (
        ("Instructions", INSTRUCTIONS, campaign.instructions_in),
        ("Consent", CONSENT, campaign.consent_in),
    ):
        lines.append(_text(name, of()))
        lines += [_text(f"{name}, {language}", of(language)) for language in campaign.translations(file)]
    return tuple(lines)


def _text(name: str, text: str) -> str:
    """A text in one line, with its digest, so that it can be told from a later one."""
    return f"{name} (digest {digest(text.encode())[:12]}): {' '.join(text.split())}"
