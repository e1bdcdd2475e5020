"""People as a scorer: the answers of a campaign to the questions of the benchmark that it was made from.

    choose                        right or wrong in each single direction (BiVLC section 4, the human row)
    yes-no, error-spans           a score per pair, the share of people who say yes, or that all is right
                                  (Winoground section 4.3)
    match, rating                 a score per pair, the mean gain or the mean rating

Questions that no one was asked are left out of the measurement.
"""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.annotate.campaign import open_campaign
from counterfoil.annotate.export import WORTH, JudgedCampaign, mean_scores, outcomes
from counterfoil.data.tables import DataTable
from counterfoil.errors import InputError
from counterfoil.scorers.base import DEFAULT, Options, reject_unused_options
from counterfoil.scorers.given import GivenTable, from_table
from counterfoil.store import digest_value

#: Rows that are one pair of a quad or one candidate of a choice carry the question's id in front of these.
_SLOT = r"_(c[01]_i[01]|s\d+)$"


def load(argument: str, options: Options = DEFAULT) -> GivenTable:
    """`people:CAMPAIGN`, with a setting `model`, by which answers to one query become one (`labels.MODELS`).

    The default is the majority; of two answers that are equally likely neither is right. Raises `DataError`
    for a folder without a campaign, `InputError` for forms whose answers are no scores, and for a campaign
    without answers.
    """
    from counterfoil.annotate.adjudication import adjudicated
    from counterfoil.annotate.answers import judgement_table
    from counterfoil.annotate.database import open_database

    reject_unused_options(f"people:{argument}", options, "settings", "whole_rows", "unanswered")
    campaign = open_campaign(Path(argument))
    if campaign.form.name not in ("choose", *WORTH):
        raise InputError(
            "people's answers to this form score no questions",
            where=f"people:{argument}",
            given=campaign.form.name,
            allowed=("choose", *WORTH),
        )
    with closing(open_database(campaign)) as db:
        table = judgement_table(db, campaign)
        decided = {key: each.answer for key, each in adjudicated(db, campaign).items()}
    if not len(table):
        raise InputError("the campaign has no answers yet", where=f"people:{argument}")
    model = options.settings.get("model", "majority")
    judged = JudgedCampaign.of(campaign, table, model=model, decided=decided)
    if campaign.form.name == "choose":
        found, whole = outcomes(judged)["outcomes"], False
        found = found.drop_null()
        if not len(found):
            raise InputError("no question has an answer in every direction", where=f"people:{argument}")
    else:
        found = mean_scores(judged, WORTH[campaign.form.name])["scores"].drop_columns(["answers"])
        paired = pc.match_substring_regex(found.column("id"), _SLOT)
        whole = not pc.any(paired).as_py()
        if not whole:
            found = _whole_questions(found)
    columns = {name: found.column(name).to_pylist() for name in found.column_names}
    weights = digest_value([campaign.digest, columns, model])
    own = replace(options, settings={}, whole_rows=whole or options.whole_rows)
    given = from_table(DataTable(columns, f"people:{argument}"), f"people:{argument}", weights, own)
    people = len(pc.unique(judged.judgements.column("person")))
    answers = len(judged.main_answers())
    return replace(
        given, partial=True, described=f"{answers:,} answers of {people:,} people ({campaign.form.name})"
    )


def _whole_questions(scores: pa.Table) -> pa.Table:
    """The rows of questions of which every pair has a score: as many as most questions have."""
    question = pc.replace_substring_regex(scores.column("id"), _SLOT, "")
    counts = {row["values"]: row["counts"] for row in pc.value_counts(question).to_pylist()}
    most = max(counts.values())
    return scores.filter(pa.array([counts[name] == most for name in question.to_pylist()]))
