"""Campaigns made from tables, pools, benchmarks, builds and other campaigns."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from math import ceil
from pathlib import Path
from typing import Annotated, Any, cast

import numpy as np

from counterfoil import catalog
from counterfoil.annotate import campaign as campaigns
from counterfoil.annotate.export import JudgedCampaign, authored_rows
from counterfoil.annotate.forms.base import ROLES, WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.golden import drawn_golden
from counterfoil.annotate.items import CampaignItems, check_items, items_of_benchmark, items_of_table
from counterfoil.annotate.pictures import Pictures
from counterfoil.annotate.platforms.registry import OWN_ENTRIES, campaign_platform
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.folder import is_benchmark_folder
from counterfoil.benchmarks.readers.own import kind_of
from counterfoil.benchmarks.tables import EXTENSIONS, DataTable, read_table
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import changes_of, values_of
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import given_of
from counterfoil.jobs.annotate_judgements import read_judgements
from counterfoil.jobs.job import documented, feedback_of, job, option, path_of
from counterfoil.jobs.results import Tabular, declared, lines
from counterfoil.jobs.shared_options import OVERWRITE, Reporting, Settings
from counterfoil.outputs import Folder, guarded
from counterfoil.report.tables import Table, amount

#: Golden items are drawn where a table of them is asked for by this name.
AUTO = "auto"
#: What can be asked about the answers of another campaign.
_FOLLOWS = "quad-validation from quad-authoring"
#: Columns of authored quads as those of their validation.
_VALIDATED = {
    "image": "first_image",
    "negative_image": "second_image",
    "caption": "first_caption",
    "negative_caption": "second_caption",
}
#: Where golden items are given and the recipe says nothing of them: their share in a queue and in a block.
_GOLDEN_SHARE = 0.1

#: Platforms whose people are paid, and what they get per hour where nothing is said.
PAYING, USUAL_PAY = ("prolific", "connect"), 12.0


@documented
class CampaignSources(Reporting, total=False):
    """What a campaign is made from beside its source.

    Arguments:
        golden: Items with a known answer in column 'golden'; for a pool, auto draws true and random pairs.
        onboarding_items: Items of the qualification test, with answers in column 'golden'.
        images: Folder of the images.
        benchmark: The benchmark whose images and captions a table names by ids.
        data: Where the benchmark's data is.
        sample: For a benchmark: sample N of its questions at random.
        settings: Setting of the form, KEY=VALUE; may be repeated.
    """

    golden: Annotated[str | Path | None, option(None, metavar="TABLE|auto")]
    onboarding_items: Annotated[str | Path | None, option(None, flag="--onboarding", metavar="TABLE")]
    images: Annotated[str | Path | None, option(None, metavar="FOLDER", folder=True)]
    benchmark: Annotated[str | None, option(None, metavar="NAME")]
    data: Annotated[str | Path | None, option(None, metavar="PATH")]
    sample: Annotated[int | None, option(None, low=1, high=most("items"))]
    settings: Annotated[Settings, option(None, flag="--set", metavar="KEY=VALUE")]


class CreatedCampaign(Tabular):
    """A campaign that was made: how many items of which role, and what its work comes to."""

    campaign: campaigns.Campaign

    rows_by = declared(
        role="one per role that items have: `role`, `items: int`, `instances: int` (of which one judges "
        "one item each), the `answers: int` needed, `hours: float` and `cost: float` at the form's usual "
        "time per item"
    )

    def _rows(self, by: str) -> Iterator[Any]:
        parts = campaigns.budget_of(self.campaign).parts
        for role in ROLES:
            its = [item for item in self.campaign.items if item.role == role]
            if its:
                counts = {"items": len(its), "instances": len({item.exclusion_group for item in its})}
                yield {"role": role, **counts}, parts.get(role, campaigns.BudgetPart(0, 0.0, 0.0))

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.table(
            f"{self.campaign.recipe.title} ({self.campaign.form.name})",
            {
                "role": "{role}",
                "items": "{items:,}",
                "instances": "{instances:,}",
                "answers": "{answers:,}",
                "hours": "{hours:.1f}",
                self.campaign.recipe.currency: "{cost:,.2f}",
            },
        )

    @property
    def notes(self) -> list[str]:
        form, pay, budget = self.campaign.form, self.campaign.pay, campaigns.budget_of(self.campaign)
        reading = budget.parts[campaigns.READING]
        # Of `choose` people are scored by right answers.
        work = [item for item in self.campaign.items if item.role == "work"]
        blind = sum(not item.truth for item in work) if form.name == "choose" else 0
        overlap, most = self.campaign.recipe.overlap, campaigns.items_per_person(self.campaign)
        most = min(most, len(work))
        together = max(Counter(item.exclusion_group for item in work).values(), default=1)
        people = max(ceil(len(work) * overlap / max(1, most)), together * overlap)
        why = ", and never two of one question" if together > 1 else ""
        return lines(
            f"pay is {pay.currency} {pay.terms}" if pay.per_item else "people are not paid (--pay-per-hour)",
            pay.below_least(None),
            f"one person does at most {most:,} of the {amount(len(work), 'item')}{why}: it takes "
            f"{people:,} people or more",
            blind
            and f"{blind:,} of {len(work):,} items have no known right answer (column 'truth'): their "
            "answers are exported, but score nobody",
            f"hours and cost are at {form.seconds:g} seconds per item, which is usual for {form.name}",
            f"{budget.people:,} people together, with {_duration(reading.hours)} to read the pages: "
            f"{_duration(budget.hours)} and {pay.currency} {budget.cost:,.2f}, without fees of platforms",
            f"created: {self.campaign.folder}; serve it with: counterfoil annotate serve "
            f"{self.campaign.folder}",
        )

    def to_json(self) -> dict[str, Any]:
        return {
            "campaign": str(self.campaign.folder),
            "form": self.campaign.form.name,
            "digest": self.campaign.digest,
            "roles": self.to_arrow().to_pylist(),
            "budget": asdict(campaigns.budget_of(self.campaign)),
        }


def _duration(hours: float) -> str:
    return amount(max(1, round(60 * hours)), "minute") if hours < 1 else f"{hours:,.1f} hours"


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate create match --from pool.csv --benchmark coco-5k --images val2014/ --golden auto
  --design blocks --per-person 20 --out campaign/
  counterfoil annotate create choose --from bivlc --sample 500 --design blocks --per-person 100 --overlap 1
  --out human-baseline/
  counterfoil annotate create best-of-k --from build/bivlc/steps/2-imagine/rows.parquet
  --images build/bivlc/images --out campaign/
  counterfoil annotate create yes-no --from winoground --onboarding test.csv --overlap 10 --out campaign/
  counterfoil annotate create rating --from captions.csv --set levels=5 --out campaign/""",
)
def create_campaign(
    form: Annotated[str, option(metavar="FORM")],
    source: Annotated[str | Path, option(flag="--from", metavar="SOURCE")],
    out: Annotated[str | Path, option(flag="--out")],
    *,
    overwrite: Annotated[bool, OVERWRITE] = False,
    **options: Annotated[Any, CampaignSources, campaigns.CampaignRecipe],
) -> CreatedCampaign:
    """Create a campaign folder with items, images, settings and instructions, ready to serve.

    Settings are in campaign.toml in that folder, which you can edit before people come.

    Fields of `counterfoil.annotate.settings.CampaignRecipe` are arguments. Nothing is written before all
    items are read and checked; what a stopped call left is finished by the same call again.

    Arguments:
        form: The form of work (counterfoil annotate forms).
        source: A table of items or a pool of pairs, a benchmark's name or folder, or another campaign.
        out: The folder of the campaign.

    >>> import tempfile
    >>> from counterfoil import annotate_simulate
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder) / "pairs"
    ...     created = create_campaign("yes-no", "world-quads", place, overlap=2, sample=3, quiet=True)
    ...     simulated = annotate_simulate(place, people=8, accuracy=1.0, quiet=True)
    ...     created.to_arrow()["items"].to_pylist(), simulated.simulation.counts.answers
    ([12], 24)
    """
    given = cast(CampaignSources, options)
    feedback = feedback_of(given)
    recipe = _recipe(form, given["settings"], given_of(campaigns.CampaignRecipe, options))
    reads = [source, given["golden"], given["onboarding_items"], given["images"]]
    with guarded("annotate create", overwrite=overwrite, reads=reads) as outputs:
        outputs.folder(Folder(Path(out), campaigns.FILES))
        reader = _ItemReader(given, recipe)
        with feedback.busy("reading items"):
            work, benchmark, salt = reader.items(str(source))
            items = [*work.items]
            for role, path in (("golden", given["golden"]), ("onboarding", given["onboarding_items"])):
                if str(path) == AUTO and role == "golden":
                    items += reader.drawn(work, benchmark)
                elif path is not None:
                    items += reader.table(read_table(Path(path)), benchmark, role).items
        # Golden and onboarding items are in use, where the recipe says nothing of those that are there.
        count = Counter(item.role for item in items)
        if count["golden"] and not (recipe.golden_share or recipe.golden_per_block):
            if recipe.design == "blocks":
                recipe = replace(recipe, golden_per_block=min(count["golden"], _usual_golden(recipe)))
            else:
                recipe = replace(recipe, golden_share=_GOLDEN_SHARE)
        recipe = replace(recipe, onboarding=recipe.onboarding or count["onboarding"])
        check_items(items, recipe)
        with feedback.busy("copying images"):
            parts = Path(out), recipe, items, reader.pictures
            return CreatedCampaign(campaigns.create_folder(*parts, source=work.rows, salt=salt))


def _recipe(form: str, settings: Settings, values: dict[str, Any]) -> campaigns.CampaignRecipe:
    """The recipe, settings of the form read as texts of a command line or as values."""
    entry = WORK_FORMS.find(form)
    where = f"settings of '{form}'"
    settings_of_form = values_of(entry.kind, changes_of(entry.kind, settings, "--set"), where=where)
    if values.get("entry") in PAYING and not values.keys() & {"pay_per_hour", "pay_per_item"}:
        values["pay_per_hour"] = USUAL_PAY
    if "languages" in values:
        values["languages"] = tuple(",".join(values["languages"]).split(","))
    entry.form(settings_of_form, where=where)
    values["title"] = values.get("title") or f"{entry.summary[:1].upper()}{entry.summary[1:]}"
    recipe = campaigns.CampaignRecipe(form=form, **values, settings=settings_of_form)
    if recipe.entry not in OWN_ENTRIES:
        campaign_platform(recipe.entry, recipe.completion)
    return recipe


class _ItemReader:
    """What reads items for a campaign's form of work, with their pictures."""

    def __init__(self, given: CampaignSources, recipe: campaigns.CampaignRecipe) -> None:
        self.given, self.recipe, self.form = given, recipe, campaigns.form_of(recipe, where="the campaign")
        self.pictures, self.rng = Pictures(), np.random.default_rng([recipe.seed, 0])

    def items(self, source: str) -> tuple[CampaignItems, Benchmark | None, str]:
        """Items of the source, the benchmark that is known beside it, and the salt of another campaign."""
        path, name, sample = Path(source), self.given["benchmark"], self.given["sample"]
        if (path / campaigns.RECIPE).is_file():
            return self._campaign(path)
        if path.suffix.lower() in EXTENSIONS and source not in catalog.BENCHMARKS:
            table = read_table(path)
            kind = kind_of(table.columns)
            whole = None if kind is None else f"as a benchmark's questions: --from {kind} --data {source}"
            if sample is not None:
                raise InputError("--sample is of a benchmark's questions", given=source, hint=whole)
            if kind == "pairs" and self.form.name == "choose" and "captions" not in table:
                text = "pairs of captions, and no items of the form 'choose'"
                raise DataError(text, where=source, hint=whole)
            named = None if name is None else self._benchmark(name)
            return self.table(table, named), named, ""
        if source not in catalog.BENCHMARKS and not is_benchmark_folder(path):
            kinds = f"a file that ends in {', '.join(EXTENSIONS)}, a benchmark's name or folder, a campaign"
            raise DataError("no table, benchmark or campaign of this name", where=source, allowed=kinds)
        benchmark = self._benchmark(source)
        try:
            items = items_of_benchmark(benchmark, self.form, self.pictures, sample=sample, rng=self.rng)
        except DataError as error:
            raise DataError(str(error), where=source) from None
        return items, benchmark, ""

    def table(self, table: DataTable, benchmark: Benchmark | None, role: str = "work") -> CampaignItems:
        """Items of a table, which may name images and captions of the benchmark by their ids."""
        where: Any = {"folder": path_of(self.given["images"]), "benchmark": benchmark, "role": role}
        return items_of_table(table, self.form, self.pictures, **where)

    def _benchmark(self, name: str) -> Benchmark:
        """The benchmark; data that is named may hold another number of questions than the release."""
        data = self.given["data"]
        return catalog.benchmark(name, data=data, images=self.given["images"], counts=data is None)

    def _campaign(self, folder: Path) -> tuple[CampaignItems, Benchmark | None, str]:
        """Quads that the people of another campaign wrote; its salt tells who was their author."""
        table, other = read_judgements(folder)
        assert other is not None
        pairing = f"{self.form.name} from {other.form.name}"
        if pairing != _FOLLOWS:
            text = "only authored quads become another campaign's items"
            raise InputError(text, where=folder, given=pairing, allowed=_FOLLOWS)
        rows = authored_rows(JudgedCampaign.of(other, table))
        columns = {_VALIDATED.get(name, name): rows.column(name).to_pylist() for name in rows.column_names}
        quads = DataTable(columns, str(folder))
        items = items_of_table(quads, self.form, self.pictures, folder=folder / campaigns.IMAGES)
        return items, None, other.secrets["salt"]

    def drawn(self, items: CampaignItems, benchmark: Benchmark | None) -> Sequence[WorkItem]:
        """Golden pairs drawn from the gallery that a pool is of, as many as its blocks or its queue take."""
        rows, recipe = items.rows, self.recipe
        if benchmark is None or not {"image", "caption"} <= set(rows.column_names):
            what = "golden items are drawn for a pool of a gallery's pairs"
            hint = "name the gallery with --benchmark, or give a table of golden items"
            raise InputError(what, where="--golden auto", hint=hint)
        pairs = set(zip(rows["image"].to_pylist(), rows["caption"].to_pylist(), strict=True))
        n = len(items.items)
        if recipe.design == "blocks":
            per_block = recipe.golden_per_block or _usual_golden(recipe)
            total = per_block * ceil(n / max(1, recipe.per_person - per_block))
        else:
            total = ceil(n * (recipe.golden_share or _GOLDEN_SHARE))
        return drawn_golden(benchmark, pairs, max(1, ceil(total / 2)), self.form, self.pictures, self.rng)


def _usual_golden(recipe: campaigns.CampaignRecipe) -> int:
    return max(1, round(_GOLDEN_SHARE * recipe.per_person))
