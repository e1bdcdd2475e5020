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
        step_class = resolve(self.target)
        assert isinstance(step_class, type)
        return step_class

    def step(self, settings: Mapping[str, Any], *, where: object) -> Step:
        instance = made_of(self.kind, settings, where=where)
        if not isinstance(instance, Step):
            allowed = "name, version, requires, produces (once called reads and makes), run"
            raise InputError(f"is no step: {self.target}", where=where, allowed=allowed)
        return instance


#: By module and class a line about the step, and an example, whose first word is the name.
_BUILTIN: Mapping[str, tuple[str, str]] = {
    "read:ReadRows": (
        "rows from a benchmark, a table, captions, or the drawn world",
        "read --source captions.json --out rows.parquet",
    ),
    "format:Format": (
        "captions in one form: capitals, final stop, spaces, quotes",
        "format rows.parquet --out formatted.parquet",
    ),
    "negate:Negate": (
        "negative captions by rules, a language model, or edits of drawn scenes",
        "negate rows.parquet --categories replace_obj,swap_att --out negated.parquet",
    ),
    "rate:Rate": ("scores of captions by any model", "rate pairs.csv --model lm:gpt2 --out rated.csv"),
    "rate:Select": (
        "the best rows of every category by their scores",
        "select rated.csv --by negative_vera --share 0.35 --out best.csv",
    ),
    "dedup:Dedup": (
        "one of all rows with equal or similar captions",
        "dedup pairs.csv --near 0.9 --out once.csv",
    ),
    "dedup:Clean": (
        "drop rows that other sets have too, and captions that are questions",
        "clean pairs.csv --against test.csv --out clean.csv",
    ),
    "refine:Refine": (
        "drop rows until blind scores tell nothing",
        "refine pairs.csv --scores vera.csv --scores cola.csv --out refined.csv",
    ),
    "imagine:Imagine": (
        "images for captions: drawn, by a diffusion pipeline, or by an endpoint",
        "imagine rows.parquet --by world --k 4 --out imagined/rows.parquet",
    ),
    "caption:WriteCaptions": (
        "captions for images: by a captioning model, an endpoint, or the world",
        "caption rows.parquet --by captioner:FOLDER --images photos/ --out told/rows.parquet",
    ),
    "filter:Choose": (
        "the best of several candidates for a row, or none",
        "choose candidates.parquet --model open-clip:MODEL --out chosen.parquet",
    ),
    "filter:FilterAmbiguous": (
        "drop questions whose negative fits too, by people's answers or by models",
        "filter rows.parquet --people answers.csv --out filtered.parquet",
    ),
    "positives:MissingPositives": (
        "right pairs that rows lack, proposed by models and judged in rounds",
        "positives pairs.csv --images photos/ --people judged.csv --out all.csv",
    ),
    "assemble:Assemble": (
        "a benchmark or a training set of the rows",
        "assemble rows.parquet --images photos/ --out mine/rows.parquet",
    ),
}
STEPS: Registry[StepEntry] = Registry(
    "step",
    StepEntry,
    "counterfoil.steps",
    [
        StepEntry(
            example.split()[0], summary, f"counterfoil build {example}", f"counterfoil.build.steps.{target}"
        )
        for target, (summary, example) in _BUILTIN.items()
    ],
)
