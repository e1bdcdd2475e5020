"""An audit of benchmarks: can their questions be answered without looking at the images, and why?"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.caption_files import read_image_names, read_texts
from counterfoil.benchmarks.contrasts import Contrasts
from counterfoil.engine.plan import check_at_hand
from counterfoil.engine.session import run
from counterfoil.errors import CounterfoilError, DataError, InputError, UnknownNameError
from counterfoil.evaluation import audit as audits, duplicates as duplicates
from counterfoil.evaluation.audit import Artefact, BenchmarkAudit, artefacts
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.intervals import LEVEL
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.inputs.options import with_default
from counterfoil.jobs import shared_options as shared
from counterfoil.jobs.evaluation_inputs import JobInputs, title_of
from counterfoil.jobs.job import documented, job, option
from counterfoil.jobs.results import Tabular, declared, write
from counterfoil.jobs.shared_options import AnyBenchmark, AnyModel
from counterfoil.metrics.ties import Ties
from counterfoil.models.base import DEFAULT, abilities
from counterfoil.report import audit_page, html
from counterfoil.report.tables import Table

#: The models that every audit asks.
BLIND = ("blind:length", "blind:unigram", "blind:bag-of-words", "blind:learned")
#: The grouping that names splits of one data set.
_SPLIT = "split"
#: The name, captions and names of images of another table, file of captions, or benchmark.
OtherSet = tuple[str, list[str], list[str]]


@documented
class AuditRows(shared.Sources, shared.Device, shared.Work, total=False):
    """Options of an audit.

    Model:
        models: Another model, such as lm:gpt2; may be repeated.

    Data:
        against: Captions that must not recur: a table (CSV, TSV, JSON, JSON Lines, Parquet), a .txt file with
            one per line, or another benchmark; may be repeated.
        pictures: Whether to search images for duplicates.

    Statistics:
        level: Probability of naming a word where none gives answers away.
    """

    models: Annotated[
        str | AnyModel | Sequence[str | AnyModel],
        option((), flag="--model", metavar="MODEL", complete="models"),
    ]
    settings: Annotated[shared.Settings, shared.SETTINGS]
    against: Annotated[
        str | Path | Sequence[str | Path], option((), metavar="TABLE|BENCHMARK", complete="benchmarks")
    ]
    limit: Annotated[int | None, shared.LIMIT]
    counts: Annotated[bool, shared.COUNTS]
    pictures: Annotated[bool, option(True)]
    level: Annotated[float, option(LEVEL, low=0.0001, high=0.5)]
    draws: Annotated[int, with_default(shared.DRAWS, 2000)]
    seed: Annotated[int, shared.SEED]


class Audit(Tabular):
    """What benchmarks give away without their images, and what repeats in them."""

    audits: tuple[BenchmarkAudit, ...]
    remarks: tuple[str, ...] = ()

    rows_by = declared(
        measure="one per `benchmark`, `model`, `group` (empty for all questions) and `measure`, with "
        "`value: float`, `low: float`, `high: float` (95 %), `n: int` and `chance: float`",
        word="one per `benchmark` and `word` that gives answers away: in how many questions the `right: "
        "int` caption alone has it, and the `wrong: int` one, in how many clusters (`for_right: int`, "
        "`for_wrong: int`), with `p: float`, `p_adjusted: float` and `examples: ints`, numbers of questions",
        duplicate="one per `benchmark` and `kind` of repetition: its `count: int` and `meaning`",
    )
    page_has_figures = False

    def _rows(self, by: str) -> Iterator[Any]:
        for audited in self.audits:
            about = {"benchmark": audited.benchmark.name}
            if by == "measure":
                for result in audited.blind:
                    for group, values in {"": result.measures, **result.groups}.items():
                        names = {**about, "model": result.model, "group": group}
                        yield from (({**names, "measure": name}, value) for name, value in values.items())
            else:
                yield from ((about, row) for row in (audited.named if by == "word" else audited.repeated))

    def __getitem__(self, benchmark: str) -> BenchmarkAudit:
        """What was found of the benchmark of this name."""
        by_name = {audited.benchmark.name: audited for audited in self.audits}
        if benchmark not in by_name:
            raise UnknownNameError("benchmark", benchmark, by_name)
        return by_name[benchmark]

    @property
    def tables(self) -> list[Table]:
        """Blind models, groups, words, duplicates, and what is shared."""
        return [table for audited in self.audits for table in audit_page.tables(audited)]

    @property
    def notes(self) -> tuple[str, ...]:
        """What matters most of each benchmark, and what was left out."""
        leads = [f"{audited.benchmark.name}: {audit_page.lead(audited)}" for audited in self.audits]
        return (*leads, *(note for audited in self.audits for note in audited.notes), *self.remarks)

    def to_json(self) -> dict[str, Any]:
        return {"benchmarks": [audited.to_json() for audited in self.audits], "notes": list(self.remarks)}

    def to_html(
        self,
        path: str | Path,
        *,
        title: Annotated[str, shared.TITLE] = "What captions give away",
        overwrite: bool = False,
    ) -> None:
        """Write one self-contained page."""
        chapters, notes = audit_page.chapters(self.audits), map(html.shareable, self.remarks)
        page = html.render("audit.html", title=title, chapters=chapters, notes=list(notes))
        write(path, page, command="audit", overwrite=overwrite)


@job(
    outputs="html json",
    examples="""Examples:
  counterfoil audit sugarcrepe --data sugar-crepe/data --html audit.html
  counterfoil audit pairs --data mine.csv --against train.csv --json audit.json
  counterfoil audit sugarcrepe winoground --data sets/ --model lm:gpt2
  counterfoil audit valse --data valse/ --model text-classifier:textattack/distilbert-base-uncased-CoLA

Models that see images need the image files.""",
)
def audit(
    benchmarks: Annotated[AnyBenchmark | Sequence[AnyBenchmark], shared.BENCHMARKS],
    **options: Unpack[AuditRows],
) -> Audit:
    """Test whether captions alone give the answer: blind models, telling words, duplicates, leakage.

    Every number has an interval and a chance level; ties count one half. Learned models are trained on
    questions that share no image or caption with the one tested.

    `benchmarks` are read from `data` and `images` as `evaluate` does. Words that right captions have and
    wrong ones lack are tested together, so that the chance of naming any where there is no artefact is at
    most `level`. Captions, and images at hand (unless `pictures` is False), are searched for duplicates; of
    several benchmarks, and of those and tables of captions in `against`, what they share is counted. Names
    and files are checked before anything is computed; a model that cannot answer a benchmark's form is left
    out with a note. Raises `DataError` where captions are not at hand.

    >>> audited = audit("world-quads", limit=60, draws=100, pictures=False, cache=None, quiet=True)
    >>> [result.model for result in audited["world-quads"].blind][-1], audited["world-quads"].named
    ('blind:learned', ())
    """
    extra, prepared = _listed(options["models"]), JobInputs.of(options, _listed(benchmarks))
    sources, feedback = prepared.sources, prepared.feedback
    if options["settings"] and not extra:
        raise InputError("unsupported option", given="--set", hint="name the model with --model")
    sources.check_names()
    for model in extra:
        if isinstance(model, str):
            catalog.model_name(model)
    others: list[OtherSet] = []
    for named in _listed(options["against"]):
        path = Path(named)
        if str(named) in catalog.BENCHMARKS:
            other = sources.read(str(named), feedback, many=True)
            others.append((other.name, *_captions(other)))
        elif path.exists():
            with feedback.busy(f"reading {path.name}"):
                others.append((path.name, list(read_texts(path)), list(read_image_names(path))))
        else:
            hint = "a table of captions, or a name of 'list benchmarks'"
            raise DataError("no such file or benchmark", where=named, hint=hint)
    read = [sources.read(one, feedback, counts=options["counts"]) for one in sources.benchmarks]
    if (limit := options["limit"]) is not None:
        read = [benchmark.limited(limit) for benchmark in read]
    for one in read:
        check_at_hand(one, images=False)
    loaded = [one for model in (*BLIND, *extra) for one in _loaded(model, prepared)]
    others += [(benchmark.name, *_captions(benchmark)) for benchmark in read] if len(read) > 1 else []
    return Audit(tuple(_audited(benchmark, loaded, others, prepared) for benchmark in read))


def _listed(values: Any) -> tuple[Any, ...]:
    return tuple(values) if isinstance(values, list | tuple) else (values,)


def _loaded(model: Any, inputs: JobInputs) -> list[tuple[str, Any]]:
    """Name and load a model; a language model twice, since by sum the shorter caption is likelier."""
    if not isinstance(model, str):
        name = title_of(model)
        return [(name, _blind(name, model))]
    plain = DEFAULT if model in BLIND else inputs.options
    options_of = {model: plain}
    if model.startswith("lm:") and "score" not in plain.settings:
        per_token = replace(plain, settings={**plain.settings, "score": "mean"})
        options_of[f"{model} (mean per token)"] = per_token
    return [(name, _blind(name, inputs.load(model, loading, name))) for name, loading in options_of.items()]


def _blind(name: str, model: Any) -> Any:
    """The model; raises `InputError` for one that looks at images, whose answers give nothing away."""
    able = {"embeds", "scores_pairs", "picks", "classifies"}.intersection(abilities(model))
    if able and "images" in getattr(model, "needs", ("images", "captions")):
        raise InputError(
            "looks at images, and an audit takes models that see none",
            where=name,
            allowed="blind:..., lm:..., text-classifier:..., plausibility:...",
            hint="'counterfoil evaluate' measures it",
        )
    return model


def _captions(benchmark: Benchmark) -> tuple[list[str], list[str]]:
    texts = [caption.text for caption in benchmark.captions if caption.text is not None]
    return texts, [image.id for image in benchmark.images]


def _audited(
    benchmark: Benchmark, models: Sequence[tuple[str, Any]], others: Sequence[OtherSet], inputs: JobInputs
) -> BenchmarkAudit:
    rows, notes = inputs.rows, list[str]()
    contrasts: Contrasts | None = None
    if benchmark.questions.caption_candidates() is None:
        notes.append(
            f"{benchmark.name}: its questions choose among no captions, so that no words were tested and no "
            "model could learn from them"
        )
        models = [(name, model) for name, model in models if "learns" not in abilities(model)]
    else:
        contrasts = Contrasts.of(benchmark)
        benchmark = audits.with_same_words(benchmark, contrasts)
    blind: list[Result] = []
    told_apart: dict[str, Estimate] = {}
    with inputs.feedback.progress() as progress:
        session = replace(inputs.session, progress=progress)
        for i, (name, model) in enumerate(models):
            progress(f"auditing {benchmark.name}", i, len(models))
            try:
                answers = run(benchmark, model, session=session)
            except InputError as error:
                if isinstance(error, DataError):
                    raise
                notes.append(f"{name} was left out: {error}")
                continue
            drawn = {"draws": rows["draws"], "seed": rows["seed"]}
            blind.append(evaluate(benchmark, answers, model=name, ties=Ties.HALF, **drawn))
            if contrasts is not None and not contrasts.decides and answers.has_scores:
                # The scores of the captions that questions choose among: the mean over images.
                candidates = benchmark.questions.caption_candidates()
                assert candidates is not None
                flat, size = benchmark.listed.of_pairs(answers.scores), len(candidates.caption)
                sums = np.bincount(candidates.row_of, weights=flat, minlength=size)
                means = sums / np.bincount(candidates.row_of, minlength=size)
                told_apart[name] = audits.told_apart(contrasts, means, benchmark)
        progress(f"auditing {benchmark.name}", len(models), len(models))
        words: tuple[Artefact, ...] = artefacts(contrasts) if contrasts is not None else ()
        repeated: list[duplicates.Repeated] = duplicates.caption_duplicates(benchmark)
        if rows["pictures"]:
            repeated += _images(benchmark, progress, notes)
        shared = _leakages(benchmark, others)
    return BenchmarkAudit(
        benchmark,
        tuple(blind),
        told_apart,
        words,
        int(contrasts.same_words.sum()) if contrasts is not None else 0,
        tuple(repeated),
        tuple(shared),
        tuple(notes),
        rows["level"],
    )


def _images(benchmark: Benchmark, progress: Any, notes: list[str]) -> list[duplicates.Repeated]:
    shown = [image for image in benchmark.images if image.source is not None]
    shown = shown if benchmark.card.shows == "image" else []
    facts: dict[str, tuple[str, int]] = {}
    broken = 0
    for i, image in enumerate(shown):
        progress("comparing images", i, len(shown))
        try:
            facts[image.id] = duplicates.image_facts(image)
        except CounterfoilError:
            broken += 1
    if shown:
        progress("comparing images", len(shown), len(shown))
    if broken:
        notes.append(f"{broken:,} of {len(shown):,} images cannot be read and were not compared")
    if not facts:
        return []
    if len(shown) < len(benchmark.images):
        notes.append(f"{len(facts):,} of {len(benchmark.images):,} images are at hand and were compared")
    return duplicates.image_duplicates(facts)


def _leakages(benchmark: Benchmark, others: Sequence[OtherSet]) -> list[duplicates.Leakage]:
    """What the benchmark shares with other sets, and its splits with each other."""
    leakages = [duplicates.leakage(benchmark, *other) for other in others if other[0] != benchmark.name]
    labels = np.array(benchmark.questions.groupings.get(_SPLIT, ()), dtype=object)
    names = [name for name in dict.fromkeys(labels.tolist()) if name]
    for i, name in enumerate(names):
        for other in names[i + 1 :]:
            texts, rows = _captions(benchmark.select(labels == other)), np.flatnonzero(labels == name)
            part = duplicates.leakage(benchmark, f"{name} in {other}", *texts, rows=rows)
            leakages.append(replace(part, of=f"{benchmark.name}, {name}"))
    return leakages
