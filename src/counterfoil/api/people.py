"""Annotation campaigns from Python: made, simulated, their agreement and their labels."""

from collections.abc import Mapping
from pathlib import Path

from counterfoil.api.arguments import feedback_of
from counterfoil.engine.deduplicate import Note, Progress
from counterfoil.jobs.annotate_agreement import PeopleAgreements
from counterfoil.jobs.annotate_agreement import annotate_agreement as agreement_task
from counterfoil.jobs.annotate_create import CreatedCampaign, CreateOptions
from counterfoil.jobs.annotate_create import create_campaign as create_task
from counterfoil.jobs.annotate_exchange import CampaignExport
from counterfoil.jobs.annotate_exchange import annotate_export as export_task
from counterfoil.jobs.annotate_simulate import SimulatedCampaign
from counterfoil.jobs.annotate_simulate import annotate_simulate as simulate_task


def create_campaign(
    form: str,
    source: str | Path,
    out: str | Path,
    options: CreateOptions | None = None,
    *,
    overwrite: bool = False,
    quiet: bool = False,
    note: Note | None = None,
) -> CreatedCampaign:
    """Make an annotation campaign at `out`, as `counterfoil annotate create` does it.

    `form` is a form of work, `source` a table, a benchmark's name or folder, or a campaign whose answers
    become items. `options.recipe` has fields of `campaign.toml`, `options.settings` those of the form.
    `counterfoil annotate serve` serves the folder. Raises `InputError` for a design that cannot be and
    `DataError` for items that the form cannot show.

    >>> import tempfile
    >>> options = CreateOptions(recipe={"overlap": 2}, sample=3)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     made = create_campaign("yes-no", "world-quads", Path(folder) / "pairs", options, quiet=True)
    ...     tried = annotate_simulate(Path(folder) / "pairs", people=8, accuracy=1.0, quiet=True)
    ...     made.to_arrow()["items"].to_pylist(), tried.simulation.counts.answers
    ([12], 24)
    """
    feedback = feedback_of(quiet=quiet, progress=None, note=note)
    return create_task(form, source, out, options or CreateOptions(), overwrite=overwrite, feedback=feedback)


def annotate_simulate(
    campaign: str | Path,
    *,
    people: int = 50,
    mix: Mapping[str, float] | None = None,
    accuracy: float | None = None,
    seed: int = 0,
    keep: str | Path | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    progress: Progress | None = None,
    note: Note | None = None,
) -> SimulatedCampaign:
    """Run a campaign by simulated people on a database of its own, as `counterfoil annotate simulate` does.

    `mix` are shares of kinds of people ("able", "hasty", "one-sided", "careless", "adversarial", "bot"),
    `accuracy` how often able ones are right; `keep` is a folder that becomes a copy of the campaign's with
    all that was answered. Raises `InputError` for unknown kinds.
    """
    feedback = feedback_of(quiet=quiet, progress=progress, note=note)
    return simulate_task(
        campaign,
        people=people,
        mix=mix,
        accuracy=accuracy,
        seed=seed,
        keep=keep,
        overwrite=overwrite,
        feedback=feedback,
    )


def annotate_agreement(
    source: str | Path,
    *,
    campaign: str | Path | None = None,
    database: str | None = None,
    draws: int = 400,
    seed: int = 0,
    quiet: bool = False,
    note: Note | None = None,
) -> PeopleAgreements:
    """Agreement of the people of a campaign, or of a table of judgements, per question and kind of item.

    `campaign`, of a table, is the one whose questions it answers; `database` is the address of a database
    elsewhere. Raises `DataError` for what is neither.
    """
    feedback = feedback_of(quiet=quiet, progress=None, note=note)
    return agreement_task(
        source, campaign=campaign, database=database, draws=draws, seed=seed, feedback=feedback
    )


def annotate_export(
    campaign: str | Path,
    out: str | Path | None = None,
    *,
    model: str = "one-coin",
    people: bool = True,
    database: str | None = None,
    overwrite: bool = False,
    quiet: bool = False,
    note: Note | None = None,
) -> CampaignExport:
    """Write a campaign's judgements, labels with their posterior, and the tables that other jobs read.

    `model` is how answers become labels: one-coin, majority or dawid-skene. Without `people` no
    table has a person's id. Raises `InputError` for a campaign without answers.
    """
    feedback = feedback_of(quiet=quiet, progress=None, note=note)
    return export_task(
        campaign, out, model=model, people=people, database=database, overwrite=overwrite, feedback=feedback
    )
