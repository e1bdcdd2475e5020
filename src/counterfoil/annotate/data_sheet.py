"""Lines about the people of a campaign for the data sheet of what was made with their answers.

`publish` states them on the card of a benchmark (`data.publishing.facts.Provenance`, key `people`). They say
nothing of any one person.
"""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from counterfoil.annotate.campaign import CONSENT, INSTRUCTIONS, Campaign
from counterfoil.annotate.submissions import Submissions
from counterfoil.store import digest


def data_sheet(campaign: Campaign, table: pa.Table) -> tuple[str, ...]:
    """How many people judged what, how often, for what pay and in what time, and by which instructions.

    `table` are the campaign's judgements. A campaign without answers that count has one line that says so.
    """
    done = Submissions.of(table)
    title = campaign.recipe.title
    if not done.counts.any():
        return (f"Campaign “{title}”: no answers.",)
    per_item = done.per_item[done.per_item > 0]
    people = np.unique(done.person[done.counts])
    lines = [
        f"Campaign “{title}”: {_people(len(people))} judged {len(per_item):,} items "
        f"({campaign.form.summary}), {np.median(per_item):g} per item in the median, "
        f"{int(done.counts.sum()):,} answers in all.",
        *_pay(campaign, done),
        *_dates(done),
    ]
    right, golden = (int(counts.sum()) for counts in done.golden_of)
    if golden:
        lines.append(
            f"Of {golden:,} answers to items of known answer {100 * right / golden:.1f} % were right."
        )
    for name, file, of in (
        ("Instructions", INSTRUCTIONS, campaign.instructions_in),
        ("Consent", CONSENT, campaign.consent_in),
    ):
        lines.append(_text(name, of()))
        lines += [_text(f"{name}, {language}", of(language)) for language in campaign.translations(file)]
    return tuple(lines)


def _people(count: int) -> str:
    return "one person" if count == 1 else f"{count:,} people"


def _pay(campaign: Campaign, done: Submissions) -> list[str]:
    pay = campaign.pay
    hourly = done.hourly(pay.per_item)
    hourly = hourly[~np.isnan(hourly)]
    if not len(hourly):
        return [f"Pay was set at {pay.currency} {pay.terms}; no times are known."]
    seconds = done.seconds[~np.isnan(done.seconds)]
    return [
        f"Pay came to {pay.currency} {np.median(hourly):.2f} per hour of work in the median of people "
        f"(set at {pay.terms}); an item took {np.median(seconds):.1f} s in the median."
    ]


def _dates(done: Submissions) -> list[str]:
    known = done.submitted[~np.isnan(done.submitted)]
    if not len(known):
        return []
    first, last = (
        datetime.fromtimestamp(float(at), UTC).date().isoformat() for at in (known.min(), known.max())
    )
    return [f"Answered on {first}." if first == last else f"Answered from {first} to {last}."]


def _text(name: str, text: str) -> str:
    """A text in one line, with its digest, so that it can be told from a later one."""
    return f"{name} (digest {digest(text.encode())[:12]}): {' '.join(text.split())}"
