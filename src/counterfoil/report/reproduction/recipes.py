"""Recomputation of printed numbers, from released files or other printed numbers: one recipe per kind."""

from collections.abc import Callable, Mapping
from itertools import permutations, product
from string import ascii_lowercase

import numpy as np

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.forms import Rated, RetrievalDirection
from counterfoil.benchmarks.readers.specs import caption_words
from counterfoil.benchmarks.tables import floats, read_table, summary_keys
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.forms.rated import points
from counterfoil.inputs.files import decoded, parse_json, read_bytes, read_json
from counterfoil.metrics import contrast, detection
from counterfoil.metrics.annotators import bias
from counterfoil.metrics.bradley_terry import bradley_terry
from counterfoil.metrics.correlation import MEASURES, kendall_tau_b
from counterfoil.metrics.detection import by_label
from counterfoil.metrics.ranking import map_at_r, recall_at_k
from counterfoil.metrics.ranks import Qrels, list_ranks
from counterfoil.report.reproduction.evidence import Case, NoDataError, Recomputed, mask
from counterfoil.report.reproduction.paper import Basis, evaluate
from counterfoil.stats.intervals import t_over_folds

#: The shape of a question's scores by form, and the measures of them.
_SCORES = {"quad": ((2, 2), contrast.QUAD), "choice": ((2,), contrast.CHOICE)}


def mean(case: Case) -> Recomputed:
    """A measure over a benchmark or over some of its groups, in per cent."""
    benchmark, measure = case.need("benchmark"), case.need("measure")
    if case.model is not None and case.model.chance:
        return chance(card(benchmark).form, measure)
    file = case.file()
    weight = mask(case.evidence.answered_questions(benchmark, file), case.spec.groups)
    return Recomputed(100 * float(case.values(measure) @ weight / weight.sum()), file)


def chance(form: str, measure: str) -> Recomputed:
    """Chance of random scores that are never equal, in per cent, over every order they can have.

    >>> chance("quad", "group")
    Recomputed(value=16.666..., source='all 24 orders of 4 scores', basis=<Basis.DERIVED: 'derived'>)
    """
    shape, measures = _SCORES[form]
    size = int(np.prod(shape))
    orders = np.array(list(permutations(range(size))), dtype=np.float64)
    values = measures[measure](orders.reshape(-1, *shape))
    return Recomputed(100 * float(values.mean()), f"all {len(orders)} orders of {size} scores", Basis.DERIVED)


def count(case: Case) -> Recomputed:
    """How many questions a benchmark or some of its groups have, or how many labels a grouping has."""
    benchmark = case.need("benchmark")
    if case.model is not None and benchmark in case.model.files:
        source = case.file()
        questions = case.evidence.answered_questions(benchmark, source)
    else:
        questions, source = case.evidence.questions(benchmark)
    if case.spec.labels is not None:
        return Recomputed(len(set(questions.questions.groupings[case.spec.labels]) - {""}), source)
    return Recomputed(int(mask(questions, case.spec.groups).sum()) * (case.spec.examples or 1), source)


def length_correlation(case: Case) -> Recomputed:
    """Pearson's r of a measure with the mean caption length, or its p (Winoground, Table 6 right)."""
    benchmark, place = case.evidence.questions(case.need("benchmark"))
    words = caption_words(case.evidence.path(place)).mean(axis=1)
    if len(words) != len(benchmark):
        raise DataError(
            "not a length for every question", where=place, given=len(words), allowed=str(len(benchmark))
        )
    return Recomputed(case.pearson(words, case.values(case.need("measure"))), f"{case.file()}, {place}")


def perplexity_correlation(case: Case) -> Recomputed:
    """Pearson's r of all pairs' scores with caption perplexity, or its p (Winoground, Table 6 left).
    Perplexities are of a run made by `counterfoil evaluate lm:gpt2 winoground --set score=perplexity --out
    FOLDER`.
    """
    place = case.need("run")
    run = case.evidence.run(place)
    row = {name: at for at, name in enumerate(run.benchmark.questions.ids)}
    ids = case.evidence.questions(case.need("benchmark"))[0].questions.ids
    if set(row) != set(ids):
        raise DataError(
            "not a run over these questions", where=case.evidence.path(place), given=f"{len(row)} ids"
        )
    answers = case.evidence.answers(case.need("benchmark"), case.file())
    if not answers.has_scores:
        raise NoDataError(f"{case.file()} holds right and wrong alone, and no scores")
    # A perplexity is a score with a minus before it, and the same with both images.
    perplexity = -run.answers.scores[[row[name] for name in ids], :, :1]
    of_pairs = np.broadcast_to(perplexity, answers.scores.shape)
    value = case.pearson(of_pairs.reshape(-1), answers.scores.reshape(-1))
    return Recomputed(value, f"{case.file()}, {place}")


def fold_interval(case: Case) -> Recomputed:
    """One end of Student's t interval over four folds, in per cent (Winoground, appendix A)."""
    values = case.values(case.need("measure"))
    low, high = t_over_folds(values, folds=4, seed=0)
    return Recomputed(100 * (low if case.need("statistic") == "low" else high), case.file())


def both_orders(case: Case) -> Recomputed:
    """The share of questions a chat model answers correctly, in per cent, averaged over candidate orders. A
    file per part holds {ID: {"correct": true, false or NaN}}; NaN counts as wrong (BiVLC, section 5.3).
    """
    folders, shares = case.spec.answers or (), []
    for folder in folders:
        files = sorted(case.evidence.path(folder).glob("*.json"))
        if not files:
            raise NoDataError(f"{folder} holds no JSON files")
        right: list[bool] = []
        for file in files:
            answers = parse_json(decoded(read_bytes(file), where=file), where=file)
            answers = answers if isinstance(answers, dict) else {"": None}
            summaries = summary_keys(answers)
            for key, answer in ((key, answer) for key, answer in answers.items() if key not in summaries):
                correct = answer.get("correct") if isinstance(answer, dict) else answer
                if not isinstance(correct, bool) and not (isinstance(correct, float) and np.isnan(correct)):
                    where, allowed = f"{file}, '{key}'", "correct: true, false or NaN"
                    raise DataError("no answer", where=where, allowed=allowed)
                right.append(correct is True)
        shares.append(100 * sum(right) / len(right))
    return Recomputed(float(np.mean(shares)), " and ".join(folders))


def detector(case: Case) -> Recomputed:
    """What detectors of synthetic captions and images get, in per cent (BiVLC, Table 5, section 5.3)."""
    benchmark, measure = case.need("benchmark"), case.need("measure")
    if case.model is not None and case.model.chance:
        if measure not in ("text", "image"):
            return chance(card(benchmark).form, measure)
        # A detector that answers without looking is right so often, over all answers to a pair.
        answers = np.array(list(product((0.0, 1.0), repeat=2)))
        value = 100 * float(detection.accuracy(answers).mean())
        return Recomputed(value, f"all {len(answers)} answers to a pair", Basis.DERIVED)
    file = case.file()
    table = read_table(case.evidence.path(file))
    heads = ["img_pred"] if measure == "image" else ["text_pred"]
    heads += ["img_pred"] if measure not in ("text", "image", "accuracy") else []
    try:
        outputs = [by_label(floats(table, head), floats(table, "label")) for head in heads]
    except InputError as error:
        raise DataError(str(error), where=table.source) from None
    if measure in ("text", "image"):
        values = detection.accuracy(*outputs)
    elif measure == "accuracy":
        values = detection.likelier(*outputs)
    else:
        values = contrast.from_directions(detection.two_steps(*outputs))[measure]
    return Recomputed(100 * float(values.mean()), file)


def judged(case: Case) -> Recomputed:
    """The correlation of a caption metric with people's ratings, times 100 (PAC-S, section 4.2)."""
    benchmark, metric, measure = case.need("benchmark"), case.need("metric"), case.need("measure")
    scores = case.evidence.metric_scores(benchmark, metric)
    parts = points(_rated(case), scores)
    value = float(np.mean([MEASURES[measure](part.scores, part.ratings) for part in parts]))
    return Recomputed(100 * value, f"{case.evidence.source(benchmark)}, {metric}")


def judgements(case: Case) -> Recomputed:
    """How many ratings, pairs or images there are, or the lowest or highest rating; `per` divides it."""
    questions = _rated(case)
    given = questions.ratings[~np.isnan(questions.ratings)]
    counts = {
        "points": len(given),
        "pairs": len(questions),
        "images": len(np.unique(questions.images)),
        "lowest": float(given.min()),
        "highest": float(given.max()),
    }
    value = counts[case.need("measure")]
    if case.spec.per is not None:
        value /= int(case.spec.per)
    return Recomputed(value, case.evidence.source(case.need("benchmark")))


def example(case: Case) -> Recomputed:
    """What a metric gives to all candidates of a file, with another's references (README of clipscore)."""
    files = case.need("candidates"), case.need("references")
    places = [case.evidence.path(name) for name in files]
    captions, references = map(read_json, places)
    if not isinstance(captions, dict) or not isinstance(references, dict) or not captions:
        raise DataError("not captions by their ids", where=places[0])
    lost = [key for key in captions if not isinstance(references.get(key), list)]
    if lost:
        raise DataError("a candidate has no references", where=places[1], given=lost[0])
    metric = case.evidence.metric(case.need("metric"))
    value = metric.of_corpus([*captions.values()], [references[key] for key in captions])
    return Recomputed(float(value), ", ".join(files))


def _rated(case: Case) -> Rated:
    benchmark, _ = case.evidence.questions(case.need("benchmark"))
    return benchmark.rated


def positives(case: Case) -> Recomputed:
    """How many right answers or queries a benchmark has in one direction (ECCV Caption, Table 3 and section
    1). `over` keeps the queries of another benchmark; `per` divides by "queries" or another benchmark's
    number.
    """
    counts, place = _counts(case, case.need("benchmark"))
    numbers = {
        "pairs": int(counts.sum()),
        "queries": len(counts),
        "fewest": int(counts.min()),
        "most": int(counts.max()),
    }
    value = numbers[case.need("measure")]
    if case.spec.per is None:
        return Recomputed(value, place)
    whole = len(counts) if case.spec.per == "queries" else int(_counts(case, case.spec.per)[0].sum())
    return Recomputed(value / whole, place)


def left_out(case: Case) -> Recomputed:
    """How many of the ids that the paper lists are neither a query nor a right answer of the benchmark."""
    benchmark, _ = case.evidence.questions(case.need("benchmark"))
    gallery, place, used = benchmark.gallery, case.evidence.source(benchmark.name), set()
    images = [image.id for image in benchmark.images]
    captions = [caption.id for caption in benchmark.captions]
    for search, queries, others in ((gallery.i2t, images, captions), (gallery.t2i, captions, images)):
        used |= {queries[at] for at in search.queries[search.defined].tolist()}
        used |= {others[at] for at in _listed(search).items.tolist() if at >= 0}
    return Recomputed(len(set(case.spec.listed or ()) - used), place)


def shown(case: Case) -> Recomputed:
    """The value in per cent of a ranking whose first R items are known (ECCV Caption, section 4.1)."""
    marks = case.need("shown")
    # Items below R are right, those from R on are wrong.
    items = np.array([at if mark == "1" else at + len(marks) for at, mark in enumerate(marks)])
    ranks = list_ranks([items], Qrels.of([list(range(len(marks)))]), gallery=2 * len(marks))
    name, _, k = case.need("measure").rpartition("_at_")
    value = map_at_r(ranks) if k == "r" else recall_at_k(ranks, int(k))
    return Recomputed(100 * float(value[0]), f"{name} of {marks}")


def _counts(case: Case, benchmark: str) -> tuple[np.ndarray, str]:
    def search_of(name: str) -> RetrievalDirection:
        gallery = case.evidence.questions(name)[0].gallery
        return gallery.i2t if case.need("direction") == "i2t" else gallery.t2i

    search = search_of(benchmark)
    keep = search.defined
    if case.spec.over is not None:
        over = search_of(case.spec.over)
        keep = np.isin(search.queries, over.queries[over.defined])
    return _listed(search).counts[keep], case.evidence.source(benchmark)


def _listed(search: RetrievalDirection) -> Qrels:
    assert isinstance(search.positives, Qrels)
    return search.positives


def printed_mean(case: Case) -> Recomputed:
    """The mean of printed numbers."""
    (column,) = case.columns(case.spec.of)
    return _printed(case, float(np.mean(list(column.values()))))


def printed_correlation(case: Case) -> Recomputed:
    """Pearson's r between two printed columns, over the rows that both have, or its p-value."""
    x, y = case.columns(case.spec.of)
    rows = [row for row in x if row in y and row not in (case.spec.without or ())]
    value = case.pearson(np.array([x[row] for row in rows]), np.array([y[row] for row in rows]))
    return _printed(case, value, f" ({len(rows)} models)")


def printed_tau(case: Case) -> Recomputed:
    """Kendall's tau-b between two printed columns, or means of several (ECCV Caption, Table 5)."""
    means = []
    for columns in (case.columns(case.spec.of), case.columns(case.spec.against)):
        rows = [row for row in columns[0] if all(row in column for column in columns)]
        # Rounded to so many decimals that equal means are equal in floating point.
        means.append({row: round(float(np.mean([column[row] for column in columns])), 9) for row in rows})
    x, y = means
    rows = [row for row in x if row in y]
    value = kendall_tau_b(np.array([x[row] for row in rows]), np.array([y[row] for row in rows]))
    return _printed(case, value, f" ({len(rows)} models)")


def printed_best(case: Case) -> Recomputed:
    """The largest number of a printed column, and whose it is."""
    (column,) = case.columns(case.spec.of)
    best = max(column.values())
    whose = " and ".join(row for row, value in column.items() if value == best)
    return _printed(case, best, f": {whose}")


def formula(case: Case) -> Recomputed:
    """A formula of numbers, or of printed columns: of the row of this name, or else of each column's sum."""
    columns = case.columns(case.spec.of)
    numbers = [column.get(case.row, sum(column.values())) for column in columns]
    value = evaluate(case.need("formula"), dict(zip(ascii_lowercase, numbers, strict=False)))
    names = "; ".join(f"{a} {name}" for a, name in zip(ascii_lowercase, case.spec.of or (), strict=False))
    source = f"as printed: {case.need('formula')}{' with ' if names else ''}{names}"
    return Recomputed(value, source, Basis.DERIVED)


def preference(case: Case) -> Recomputed:
    """The Bradley-Terry strength of the row's thing, of 100 in all (ECCV Caption, appendix D.1)."""
    columns = case.columns(case.spec.of)
    rows = list(columns[0])
    wins = np.array([[column[row] for column in columns] for row in rows])
    return _printed(case, bradley_terry(wins)[rows.index(case.row)])


def annotator_bias(case: Case) -> Recomputed:
    """What verifying one model's proposals does to results (ECCV Caption, equation E.5)."""
    (verified,), (reference,) = case.columns(case.spec.of), case.columns(case.spec.against)
    models = list(verified)
    _, _, annotator = (case.spec.of or ("",))[0].partition(", ")
    biases = bias(
        np.array([list(verified.values())]),
        np.array([[model == annotator for model in models]]),
        np.array([reference[model] for model in models]),
    )
    return _printed(case, getattr(biases, case.need("statistic"))[0])


def _printed(case: Case, value: float, more: str = "") -> Recomputed:
    columns = "; ".join((*(case.spec.of or ()), *(case.spec.against or ())))
    return Recomputed(float(value), f"as printed: {columns}{more}", Basis.DERIVED)


#: Every recipe by the name that the papers' files use.
RECIPES: Mapping[str, Callable[[Case], Recomputed]] = {
    recipe.__name__: recipe
    for recipe in (
        *(mean, count, length_correlation, perplexity_correlation, fold_interval),
        *(detector, both_orders, judged, judgements),
        *(example, positives, left_out, shown),
        *(printed_mean, printed_correlation, printed_tau, printed_best, formula, preference),
        annotator_bias,
    )
}
