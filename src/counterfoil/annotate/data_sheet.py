"""Lines about the people of a campaign for the card of a benchmark; they say nothing of any one person."""

from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from counterfoil.annotate.campaign import CONSENT, INSTRUCTIONS, Campaign
from counterfoil.annotate.judgement_table import Submissions
from counterfoil.inputs.files import digest


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
        first, last = (datetime.fromtimestamp(float(at), UTC).date().isoformat() for at in ends)
        lines.append(f"Answered on {first}." if first == last else f"Answered from {first} to {last}.")
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


def _text(name: str, text: str) -> str:
    """A text in one line, with its digest, so that it can be told from a later one."""
    return f"{name} (digest {digest(text.encode())[:12]}): {' '.join(text.split())}"
