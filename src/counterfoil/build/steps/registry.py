"""Steps by name, those of other packages (entry points `counterfoil.steps`) among them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from counterfoil.build.step import Step
from counterfoil.errors import InputError
from counterfoil.inputs.fields import made_of
from counterfoil.registry import Registry, resolve


@dataclass(frozen=True)
class StepEntry:
    """A step's name, a line about it, an example of a command, and where its class is."""

    name: str
    summary: str
    example: str
    target: str

    @property
    def kind(self) -> type[Any]:
        """The class of the step."""
        step_class = resolve(self.target)
        assert isinstance(step_class, type)
        return step_class

    def step(self, settings: Mapping[str, Any], *, where: object) -> Step:
        """The step with these settings, as `made_of` makes it."""
        instance = made_of(self.kind, settings, where=where)
        if not isinstance(instance, Step):
            raise InputError(
                f"is no step: {self.target}",
                where=where,
                allowed="name, version, requires, produces (once called reads and makes), run",
            )
        return instance


STEPS: Registry[StepEntry] = Registry(
    "step",
    StepEntry,
    "counterfoil.steps",
    (
        StepEntry(
            "read",
            "rows from a benchmark, a table, captions, or the drawn world",
            "counterfoil build read --source captions.json --out rows.parquet",
            "counterfoil.build.steps.read:ReadRows",
        ),
        StepEntry(
            "format",
            "captions in one form: capitals, final stop, spaces, quotes, spelling",
            "counterfoil build format rows.parquet --spelling american --out formatted/",
            "counterfoil.build.steps.format:Format",
        ),
        StepEntry(
            "negate",
            "negative captions by rules, a language model, or edits of drawn scenes",
            "counterfoil build negate rows.parquet --categories replace_obj,swap_att --out negated/",
            "counterfoil.build.steps.negate:Negate",
        ),
        StepEntry(
            "author",
            "a sheet for people who write questions, or the sheet that they filled in",
            "counterfoil build author rows.csv --filled sheet.csv --out rows.parquet",
            "counterfoil.build.steps.read:Author",
        ),
        StepEntry(
            "rate",
            "scores of captions by any scorer",
            "counterfoil build rate pairs.csv --scorer lm:gpt2 --out rated.csv",
            "counterfoil.build.steps.rate:Rate",
        ),
        StepEntry(
            "select",
            "the best rows of every category by their scores",
            "counterfoil build select rated.csv --by negative_vera --share 0.35 --out best.csv",
            "counterfoil.build.steps.rate:Select",
        ),
        StepEntry(
            "dedup",
            "one of all rows with equal or similar captions",
            "counterfoil build dedup pairs.csv --near 0.9 --out once.csv",
            "counterfoil.build.steps.duplicates:Dedup",
        ),
        StepEntry(
            "clean",
            "rows dropped that other sets or splits share, and questions",
            "counterfoil build clean pairs.csv --against test.csv --out clean.csv",
            "counterfoil.build.steps.duplicates:Clean",
        ),
        StepEntry(
            "refine",
            "rows dropped until blind scores tell nothing",
            "counterfoil build refine pairs.csv --scores vera.csv --scores cola.csv --out refined.csv",
            "counterfoil.build.steps.refine:Refine",
        ),
        StepEntry(
            "imagine",
            "images for captions: drawn, by a diffusion pipeline, or by an endpoint",
            "counterfoil build imagine rows.parquet --by world --k 4 --out imagined/",
            "counterfoil.build.steps.imagine:Imagine",
        ),
        StepEntry(
            "caption",
            "captions for images: by a captioning model, an endpoint, or the world",
            "counterfoil build caption rows.parquet --by captioner:FOLDER --images photos/ --out told/",
            "counterfoil.build.steps.caption:WriteCaptions",
        ),
        StepEntry(
            "choose",
            "the best of several candidates for a row, or none",
            "counterfoil build choose candidates.parquet --scorer open-clip:MODEL --out chosen.parquet",
            "counterfoil.build.steps.choose:Choose",
        ),
        StepEntry(
            "filter",
            "drop questions whose negative fits too, by people's answers or by scorers",
            "counterfoil build filter rows.parquet --people answers.csv --out filtered.parquet",
            "counterfoil.build.steps.filter:FilterAmbiguous",
        ),
        StepEntry(
            "merge",
            "right pairs of several sources in one, with the precision and recall of each",
            "counterfoil build merge pairs.csv --benchmarks eccv --data eccv/ --out merged/",
            "counterfoil.build.steps.positives:Merge",
        ),
        StepEntry(
            "positives",
            "right pairs that rows lack, proposed by models and judged in rounds",
            "counterfoil build positives pairs.csv --images photos/ --people judged.csv --out all.csv",
            "counterfoil.build.steps.positives:MissingPositives",
        ),
        StepEntry(
            "assemble",
            "a benchmark or a training set of the rows",
            "counterfoil build assemble rows.parquet --images photos/ --out mine/",
            "counterfoil.build.steps.assemble:Assemble",
        ),
    ),
)
