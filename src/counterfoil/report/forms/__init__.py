"""Reports by form of question: what each says of a benchmark, the chapter it fills, and the one mapping."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Forms
from counterfoil.benchmarks.records import Caption
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import of
from counterfoil.evaluation.result import Run
from counterfoil.report import comparison_tables, figures, tables as label_of
from counterfoil.report.html import Drawing, Grouping, Section, drawn
from counterfoil.report.results import Note, ResultTable, intervals, lead
from counterfoil.report.tables import Column, Table, measure_label, measure_meaning
from counterfoil.report.thumbnails import Thumbnails, richest
from counterfoil.stats import Reals

#: A grouping of more groups than this gets a table of its own kind, a row per group.
MANY_GROUPS = 8
#: How dots are read.
READING = "Dot: the value. Bar: its 95 % interval. Dashed: chance."
#: The most questions that are listed of those that a model does worst on.
WORST = 10
#: The single choices of a quad.
SINGLE = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")

#: What makes notes on a comparison.
NoteWriters = tuple[Callable[[Comparison], list[Note]], ...]


@dataclass(frozen=True)
class BrowserSource:
    """What a browser of questions is made from, and whether their images and captions may be in the page."""

    comparison: Comparison
    benchmark: Benchmark
    thumbnails: Thumbnails
    pictures: bool
    captions: bool

    def named_captions(self, captions: Iterable[Caption]) -> list[list[str | None]]:
        """Captions as scripts read them: their text, where the page may hold it, and their id."""
        return [[caption.text if self.captions else None, caption.id] for caption in captions]


class FormReport(ResultTable, ABC):
    """The report of one form: its chapter of a page, its notes, and the data of its browser of questions."""

    #: The key of the browser's data in the page, the section it stands in, and its script and style.
    key: ClassVar[str]
    place: ClassVar[str]
    script: ClassVar[str]
    style: ClassVar[str] = ""
    #: A model's result on a question, by the digit that encodes it; 0 is right.
    KINDS: ClassVar[tuple[str, ...]] = ("right", "wrong")
    #: The value of equal scores, by tie policy.
    policies: ClassVar[Mapping[str, str]] = {
        "strict": "Of equal scores, the wrong one counts as higher: a tie is wrong.",
        "half": "Equal scores stand in random order, and a measure is its mean over all such orders.",
        "optimistic": "Of equal scores, the right one counts as higher: a tie is right.",
    }
    #: What makes the notes on a comparison: facts and warnings on ties, chance and what is missing.
    noting: ClassVar[NoteWriters]
    #: How differences are tested, above their figure.
    tested: ClassVar[str] = (
        "Tests over the same questions, p-values after Holm's correction. Each cell is "
        "the row's model less the column's, times 100: blue where the row is ahead, orange where it is "
        "behind, no colour where the difference is not significant (p ≥ 0.05)."
    )

    @abstractmethod
    def about(self, benchmark: Benchmark) -> str:
        """The questions and their number, in a sentence or two."""

    def kinds(self, run: Run) -> Int[ndarray, "questions"]:
        """Positions in `KINDS` of a run's questions, by its tie policy; a value below 1 is wrong."""
        return (run.items["accuracy"] < 1).astype(np.int64)

    def failures(self, run: Run) -> tuple[list[int], dict[int, str]]:
        """Positions of failed questions, worst first, and how bad the first few are."""
        if (ahead := margin(run)) is not None:
            order = [q for q in np.argsort(ahead, kind="stable").tolist() if ahead[q] <= 0]
            return order, {q: f"the wrong one is ahead by {-ahead[q]:.4g}" for q in order[:WORST]}
        wrong = np.stack([run.items[name] < 1 for name in (*SINGLE, "accuracy") if name in run.items])
        order = [q for q in np.argsort(-wrong.sum(axis=0), kind="stable").tolist() if wrong[:, q].any()]
        return order, {q: f"wrong in {wrong[:, q].sum()} of {len(wrong)} choices" for q in order[:WORST]}

    @abstractmethod
    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        """What the form's script reads of the questions and of every model's answers."""

    def data(
        self, comparison: Comparison, thumbnails: Thumbnails, *, pictures: bool, captions: bool
    ) -> dict[str, Any]:
        """Questions, answers and pictures for the browser; right and wrong are decided here."""
        benchmark = richest(comparison)
        return {
            "name": comparison.benchmark,
            "title": benchmark.title,
            "form": benchmark.questions.form,
            "ties": str(comparison.runs[0].result.ties.get("policy", "")),
            "kinds": list(self.KINDS),
            "best": [run.name for run in comparison.runs].index(comparison_tables.ranking(comparison)[0]),
            **self.questions_data(BrowserSource(comparison, benchmark, thumbnails, pictures, captions)),
        }

    def ties(self, comparison: Comparison) -> str:
        """The value of equal scores under the runs' tie policy."""
        return self.policies.get(str(comparison.runs[0].result.ties.get("policy")), "")

    def notes(self, comparison: Comparison) -> list[Note]:
        """Sentences derived from the results alone, warnings first."""
        notes = [note for write in self.noting for note in write(comparison)]
        notes += intervals(comparison)
        return sorted(notes, key=lambda note: note.kind != "warning")

    def overview(self, comparison: Comparison) -> Table:
        """The table of measures that the chapter opens with."""
        return comparison_tables.overview(comparison)

    def everything(self, comparison: Comparison) -> Table | None:
        """All measures, where the overview leaves some out."""
        return None

    def meanings(self, comparison: Comparison) -> list[tuple[Column, str]]:
        """The measures of the overview with what each says."""
        form = comparison.runs[0].benchmark.questions.form
        columns = self.overview(comparison).columns
        return [(column, meaning) for column in columns if (meaning := measure_meaning(column.measure, form))]

    def measures(self, comparison: Comparison, anchor: str) -> list[Drawing]:
        """Dots of all measures, the main ones first."""
        shown = list(dict.fromkeys([*comparison_tables.main_measures(comparison), *comparison.measures]))
        return [dots(comparison, f"{anchor}-measures", "Measures", READING, shown)] if shown else []

    def finer(self, comparison: Comparison, anchor: str) -> list[Drawing]:
        """Dots of further measures, which are folded."""
        return []

    def sections(self, comparison: Comparison, anchor: str) -> list[Section]:
        """Parts of the chapter between the measures and the tests.

        Every grouping with its tables; those that the benchmark's authors report by with figures too.
        """
        benchmark = comparison.runs[0].benchmark
        labels = comparison_tables.groupings(benchmark.questions)
        official = [name for name in benchmark.card.groupings if name in labels] or list(labels)[:1]
        main = comparison_tables.grouped_measures(comparison)
        groupings = []
        for place, name in enumerate([*official, *(name for name in labels if name not in official)]):
            by, drawings = label_of.grouping(name), []
            many = len(labels[name]) > MANY_GROUPS
            if name in official and not many:
                # The first grouping in full; of the others the one number that sums the rest up.
                shown = main if name == official[0] else (comparison_tables.leading(comparison),)
                for measure in shown:
                    figure, label = figures.group_heatmap(comparison, name, measure), measure_label(measure)
                    key = f"{anchor}-by-{place}-{measure}"
                    drawings.append(drawn(label, "", key, figure, alt=f"{label} by {by}"))
            of_groups = [comparison_tables.by_group(comparison, grouping=name)]
            if many:
                of_groups = [comparison_tables.group_rows(comparison, m, grouping=name) for m in main]
            groupings.append(Grouping(by, name in official, tuple(drawings), tuple(of_groups)))
        return [Section("groups", "By group", groupings=tuple(groupings))] if groupings else []

    def directions(self, comparison: Comparison, anchor: str) -> Drawing | None:
        """One direction against the other, by a main measure of each, where both are asked."""
        main = comparison_tables.main_measures(comparison)
        i2t, t2i = (next((n for n in main if n.split("_")[0] == side), "") for side in ("i2t", "t2i"))
        if not any({i2t, t2i} <= set(run.result.measures) for run in comparison.runs):
            return None
        title = f"{measure_label(i2t)} against {measure_label(t2i)}"
        caption = "Below the dotted line, images find captions more often than captions find images."
        return drawn(title, caption, f"{anchor}-directions", figures.directions(comparison, (i2t, t2i)))

    def chapter(self, comparison: Comparison, anchor: str, pictures: str) -> dict[str, Any]:
        """What the template asks of the chapter on `comparison`; `anchor` begins every id in it."""
        main = comparison_tables.main_measures(comparison)
        # The measure that models are ordered by comes first.
        first = comparison_tables.leading(comparison)
        order = main if main[:1] == (first,) else (first, *(name for name in main[::-1] if name != first))
        # Pairs that are corrected together stand together; titles say which they are, where they are not all.
        baseline, families = comparison.baseline, []
        for family in comparison.families() if comparison.differences else ():
            among = f" from {baseline}" if family.baseline else " among the other models"
            families.append((family, "" if baseline is None else among))
        return {
            "anchor": anchor,
            "report": self,
            "comparison": comparison,
            "benchmark": richest(comparison),
            "lead": lead(comparison),
            "significance": [
                drawn(
                    f"Differences in {measure_label(name)}{among}",
                    "",
                    f"{anchor}-p-{name}{f'-{number}' if number else ''}",
                    figures.significance(family, name),
                )
                for name in order
                for number, (family, among) in enumerate(families)
            ],
            "differences": [
                comparison_tables.differences(family, name, among)
                for family, among in families
                for name in main
            ],
            "pictures": pictures,
        }


def margin(run: Run) -> Reals | None:
    """(n,) how far right scores are ahead; None without scores, and of statements without a threshold."""
    if not run.answers.has_scores:
        return None
    return of(run.benchmark).margin(run.benchmark, run.answers.scores)


def dots(comparison: Comparison, name: str, title: str, caption: str, measures: Sequence[str]) -> Drawing:
    """Dots and whiskers of some measures, a panel each."""
    panels = (figures.measures(comparison, [measure], columns=1) for measure in measures)
    return drawn(title, caption, name, *panels)


#: The report of every form, by the form's name; browsers stand in a page in this order.
FORMS: Forms[FormReport] = Forms(
    {
        "quad": "counterfoil.report.forms.contrast:QuadReport",
        "choice": "counterfoil.report.forms.contrast:ChoiceReport",
        "paraphrase": "counterfoil.report.forms.contrast:ParaphraseReport",
        "statement": "counterfoil.report.forms.contrast:StatementReport",
        "gallery": "counterfoil.report.forms.gallery:GalleryReport",
        "rated": "counterfoil.report.forms.rated:RatedReport",
        "preference": "counterfoil.report.forms.rated:PreferenceReport",
    },
    "report",
)


def report_of(benchmark: Benchmark) -> FormReport:
    """The report of a benchmark's form."""
    return FORMS[benchmark.questions.form]
