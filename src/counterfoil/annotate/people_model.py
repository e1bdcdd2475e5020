"""People as a model: the answers of a campaign to the questions of the benchmark that it was made from.

    choose                        the share of right answers in each single direction (BiVLC section 4, the
                                  human row); a tie of two is a half
    yes-no, error-spans           a score per pair, the share of people who say yes, or that all is right
                                  (Winoground section 4.3)
    match, rating                 a score per pair, the mean gain or the mean rating

Questions that no one was asked are left out of the measurement.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from counterfoil.annotate.campaign import open_campaign, unanswered
from counterfoil.annotate.export import ABOUT, WORTH, JudgedCampaign, mean_scores, question_outcomes
from counterfoil.annotate.judgement_table import read_judgement_table
from counterfoil.benchmarks.tables import DataTable
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import check_key
from counterfoil.inputs.files import digest_value
from counterfoil.models.base import DEFAULT, Options, reject_unused_options
from counterfoil.models.precomputed import PrecomputedTable, from_table
from counterfoil.models.settings import PeopleSettings, settings_of

#: Rows that are one pair of a quad or one candidate of a choice carry the question's id in front of these.
_SLOT = re.compile(r"_(c[01]_i[01]|s\d+)$")


def load(argument: str, options: Options = DEFAULT) -> PrecomputedTable:
    """`people:CAMPAIGN`, or `people:JUDGEMENTS.csv` with the setting `campaign`."""
    where = f"people:{argument}"
    reject_unused_options(where, options, "settings", "whole_rows", "unanswered")
    settings, path = settings_of(PeopleSettings, options.settings, where=where), Path(argument)
    if (path / ABOUT).is_file():
        hint = f"name the campaign's folder, or people:{path}/judgements.csv with --set campaign=DIR"
        raise InputError("an export is no campaign", where=where, hint=hint)
    for key in options.settings:
        check_key(key, ("model", "campaign" if path.is_file() else "database"), where=where)
    facts, columns = _judged(path, settings, where)
    if not next(iter(columns.values()), []):
        raise InputError("no question has an answer in every direction", where=where)
    whole = False
    if facts["form"] in WORTH:
        whole = not any(map(_SLOT.search, columns["id"]))
        columns = columns if whole else _whole_questions(columns, where)
    weights = digest_value([facts["campaign"], columns, settings.model])
    table_options = replace(options, settings={}, whole_rows=whole or options.whole_rows)
    given = from_table(DataTable(columns, where), where, weights, table_options)
    words = f"{facts['answers']:,} answers of {facts['people']:,} people ({facts['form']})"
    queries, tied = facts.get("queries", 0), facts.get("tied", 0)
    if 0 < queries < facts["answers"]:
        how = f"the label by {settings.model}" if settings.model else "the mean of its answers"
        share = f"{100 * tied / queries:.1f} %"
        words += f"; each item scores {how}; people are evenly divided on {tied:,} of {queries:,} ({share})"
    return replace(given, partial=True, described=words)


def _judged(path: Path, settings: PeopleSettings, where: str) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Facts about the answers of a campaign or a table of judgements, and outcomes or scores by column."""
    from counterfoil.annotate.answers import judgement_table
    from counterfoil.annotate.database import existing_database
    from counterfoil.annotate.review import decided_answers

    decisions, of_table = {}, path.is_file()
    if of_table and not settings.campaign:
        hint = "name the campaign with --set campaign=DIR"
        raise InputError("whose questions a table answers is not known", where=where, hint=hint)
    campaign = open_campaign(Path(settings.campaign) if of_table else path)
    if campaign.form.name not in ("choose", *WORTH):
        what, allowed = "people's answers to this form score no questions", ("choose", *WORTH)
        raise InputError(what, where=where, given=campaign.form.name, allowed=allowed)
    if of_table:
        table = read_judgement_table(path)
        odd = next((id for id in table.column("item").to_pylist() if id not in campaign.positions), None)
        if odd is not None:
            raise DataError("an item that the campaign does not have", where=path, given=odd)
    else:
        with existing_database(campaign, settings.database or None) as db:
            table = judgement_table(db, campaign)
            decisions = decided_answers(db, campaign)
    if not len(table):
        raise unanswered(path)
    judged = JudgedCampaign.of(campaign, table, model=settings.model or None, adjudicated=decisions)
    facts = judged.facts()
    if campaign.form.name == "choose":
        outcomes = question_outcomes(judged)
        if not outcomes.queries:
            what = "no right answer is known, so people's answers score nothing"
            hint = "give a column 'truth' to the table that a campaign is made from; 'annotate export' "
            hint += "writes judgements and labels without"
            raise DataError(what, where=campaign.folder, hint=hint)
        facts |= {"queries": outcomes.queries, "tied": outcomes.tied}
        table = outcomes.table.drop_null()
    else:
        table = mean_scores(judged).drop_columns(["answers"])
    return facts, table.to_pydict()


def _whole_questions(columns: Mapping[str, list[Any]], where: str) -> dict[str, list[Any]]:
    """The rows of questions of which every pair has a score: as many as most questions have."""
    slots = [_SLOT.search(id) for id in columns["id"]]
    questions = [_SLOT.sub("", id) for id in columns["id"]]
    counts = Counter(questions)
    most = max(counts.values())
    needed = 4 if any(slot and slot[1].startswith("c") for slot in slots) else 2
    if most < needed:
        given = f"answers about {len(counts):,} questions, to {most} of the pairs of one at most"
        hint = "let more people answer: nobody is asked about two pairs of one question"
        what, allowed = "no question is complete yet", f"{needed} or more"
        raise InputError(what, where=where, given=given, allowed=allowed, hint=hint)
    whole = [counts[question] == most for question in questions]
    return {
        name: [cell for cell, is_whole in zip(cells, whole, strict=True) if is_whole]
        for name, cells in columns.items()
    }
