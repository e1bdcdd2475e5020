"""The page of a tour: a part for each verb, with a picture, what it says, and the commands that made it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from counterfoil.engine.explain import ExplainedQuestion
from counterfoil.evaluation.compare import Comparison, is_significant
from counterfoil.evaluation.result import Estimate
from counterfoil.report import build_page, figures, html
from counterfoil.report.build_page import StepSection
from counterfoil.report.html import Drawing, drawn
from counterfoil.report.saliency_page import pair_card
from counterfoil.report.tables import amount, listed, measure_label
from counterfoil.report.thumbnails import Thumbnails

#: What a tour leaves in its folder, and how to go on with it.
FILES = {
    "benchmark": "questions with pictures; of your own: evaluate MODEL pairs --data my.csv --images FOLDER",
    "training, models": "rows to learn from, and the two networks; `evaluate` takes a folder of models",
    "runs": "answers and results of each model; evaluate another one into runs/NAME and compare again",
    "captions.csv, built": "captions, and what was built of them; built/report.html shows every step",
    "campaign, answers.parquet": "the questions as pages for people, and the simulated answers",
    "explain.html, compare.html": "the whole pages of which parts are shown here",
}
#: Room for the pictures of the page, in bytes.
_BUDGET = 1_000_000
#: Rows of a build that are shown: kept, and dropped.
_ROWS, _DROPPED = 3, 2
#: In inches, so that a telephone can shrink them: the width of a figure, and of the bars of the build's.
_WIDTH, _BARS = 4.6, 2.4


#: A part of the page: two sentences, figures, and what follows from them.
Part = tuple[str, list[Drawing], str]


def page(
    comparison: Comparison,
    *,
    called: Mapping[str, str],
    commands: Mapping[str, tuple[str, ...]],
    seconds: Mapping[str, float],
    n_captions: int,
    steps: Sequence[StepSection],
    kept_rows: Sequence[Mapping[str, Any]],
    dropped_rows: Sequence[Mapping[str, Any]],
    people: Mapping[str, Any],
    explained: ExplainedQuestion,
) -> str:
    """The page as HTML; `comparison` is of the runs "pairs", "negatives", "blind" and "people", `steps` are
    what became of `n_captions` in a table, and `people` labels by model with interval, kinds of simulated
    people, and their agreement.
    """
    thumbnails = Thumbnails(_BUDGET)
    parts = {
        "measure": _measure(comparison),
        "build": _build(n_captions, steps),
        "ask": _ask(people),
        "explain": _explain(explained),
        "compare": _compare(comparison),
    }
    # Rows that were kept, of different categories, then some that were dropped, for different reasons.
    stayed = {str(row.get("subset")): row for row in reversed(kept_rows)}
    dropped = {str(row.get("reason")): row for row in reversed(dropped_rows)}
    shown = [*list(stayed.values())[:_ROWS], *list(dropped.values())[:_DROPPED]]
    columns = ("caption", "negative_caption", "subset", "reason")
    benchmark, cards = comparison.runs[0].benchmark, []
    for pair in explained.pairs.values():
        chosen_image = next(i for i, image in enumerate(benchmark.images) if image.id == pair.item.image.id)
        number = thumbnails.add(benchmark.images, [[chosen_image]]).get(chosen_image, -1)
        cards.append(pair_card(pair, number, captioned=True))
    # For each of the networks the first question that it alone, of the two, gets right.
    measure = _measure_of(comparison)
    captions, images = benchmark.listed.slots()
    right = {run.name: run.items[measure] > 0.5 for run in comparison.runs}
    questions = []
    for name, other in (("pairs", "negatives"), ("negatives", "pairs")):
        only = np.flatnonzero(right[name] & ~right[other])
        for chosen_image in only[:1].tolist():
            position = int(images[chosen_image, 0])
            numbers = thumbnails.add(benchmark.images, [[position]])
            true, false = (benchmark.captions[int(place)].text or "" for place in captions[chosen_image, :2])
            questions.append(
                {
                    "head": f"Right for “{name}” and not for “{other}” in {len(only):,} of "
                    f"{len(benchmark):,} questions, such as this one",
                    "picture": thumbnails.uris[numbers[position]],
                    "right": true,
                    "wrong": false,
                    "right_by": listed([model for model in right if right[model][chosen_image]]),
                    "wrong_by": listed([model for model in right if not right[model][chosen_image]]),
                }
            )
    return html.render(
        "tour.html",
        title="What can I do with this?",
        styles=("page.css", "explain.css", "tour.css"),
        contents=[*((key, key.capitalize()) for key in parts), ("files", "Your turn")],
        steps=[(key, *part, commands[key]) for key, part in parts.items()],
        files=FILES,
        called=called,
        questions=questions,
        rows=[{name: str(row.get(name) or "") for name in columns} for row in shown],
        cards=cards,
        uris=thumbnails.uris,
        benchmark=benchmark,
        seconds=seconds,
    )


def _measure_of(comparison: Comparison) -> str:
    return comparison.runs[0].benchmark.card.measures[0]


def _measure(comparison: Comparison) -> Part:
    measure, n = _measure_of(comparison), len(comparison.runs[0].benchmark)
    estimates = {run.name: run.result.measures[measure] for run in comparison.runs}
    ranked = sorted(estimates, key=lambda name: -estimates[name].value)
    above = [name for name in ranked if estimates[name].low > (estimates[name].chance or 0)]
    others = [name for name in ranked if name not in above]
    conclusion = f"{_names(above)} {_are(above)} above chance with the whole interval. " if above else ""
    if "blind" in above:
        conclusion += "The blind model is among them, so captions alone give some of the answers away."
    else:
        conclusion += (
            f"{_names(others)} {_are(others)} not, so nothing that a blind model learned from captions "
            "gives the answers away."
        )
    figure = drawn(
        "Questions answered right",
        "Dot: the share of questions answered right. Bar: its 95 % interval over questions. Dashed: chance.",
        "measure",
        figures.dots([(f"{measure_label(measure)} (%)", estimates)], ranked, 1, width=_WIDTH),
    )
    return (
        f"Two small networks, a model that sees no picture, and simulated people answered the same {n:,} "
        "questions: which of two captions is true of a picture? Every number stands with its interval and "
        "beside what chance gives.",
        [figure],
        conclusion,
    )


def _build(n_captions: int, steps: Sequence[StepSection]) -> Part:
    largest = max(step.rows_out for step in steps)
    questions = steps[-1].rows_out
    reasons = sum((Counter(step.reasons) for step in steps), Counter[str]())
    frequent = [f"{reason} ({count:,})" for reason, count in reasons.most_common(3)]
    figure = build_page.funnel(steps, "build", width=_BARS)
    tested = [
        f"{name} from {_percent(its['before']['value'])} to {_percent(its['after']['value'])}"
        for step in steps
        for name, its in (step.facts.get("held_out") or {}).items()
    ]
    conclusion = f"The {questions:,} questions in built/benchmark can be asked now, by every command above. "
    if tested:
        conclusion += (
            "Rows dropped to balance the scores would have let a score of words alone tell right from "
            f"wrong; dropping them took {listed(tested)}, where chance is 50 %. What is left of that can "
            "still be answered without looking."
        )
    return (
        f"{amount(n_captions, 'caption')} became {largest:,} questions by rules, each a caption against "
        f"one in which one thing is changed, and {questions:,} of them stayed. Whatever was dropped is kept "
        f"with the reason, most often {listed(frequent)}.",
        [figure],
        conclusion,
    )


def _ask(people: Mapping[str, Any]) -> Part:
    labels = {model: Estimate(right, low, high, n, None) for model, right, low, high, n in people["labels"]}
    figure = drawn(
        "Labels that are right",
        "Dot: the share of labels that are right, by the way in which three answers become one label. Bar: "
        "its 95 % interval.",
        "ask",
        figures.dots([("right labels (%)", labels)], list(labels), 1, width=_WIDTH),
    )
    kinds = people["kinds"]
    did = [f"{n} {kind} ({_percent(right)} of their answers right)" for kind, n, right, _ in kinds]
    alpha, low, high = people["alpha"]
    span = "" if low is None or high is None else f" (95 % interval {low:.2f} to {high:.2f})"
    flagged = sum(count for _, _, _, count in kinds)
    majority, number = people["labels"][0], people["people"]
    return (
        f"Before people are paid, {number} simulated ones did the work: {listed(did)}. They gave "
        f"{people['answers']:,} answers, three to each question; two answers to one question agree in "
        f"{_percent(people['raw'])}, and Krippendorff's alpha is {alpha:.2f}{span}.".replace("-", "−"),
        [figure],
        f"Three answers by such people give labels of which {_percent(majority[1])} are right by "
        f"{majority[0]}; the signs of careless work flag {flagged:,} of {number:,} people. If that "
        "will do, the campaign is ready for real ones: counterfoil annotate serve campaign.",
    )


def _explain(explained: ExplainedQuestion) -> Part:
    right, wrong = explained.pairs.values()
    return (
        f"Asked about this picture, the network “pairs” scored “{wrong.item.caption.text}” "
        f"({wrong.score:.3f}) above the true “{right.item.caption.text}” ({right.score:.3f}). Blue words "
        "speak for a caption, orange ones against it, and the blue places of the picture go with it most.",
        [],
        "Where no word counts much, or the same places are blue for both, the network did not look at what "
        "the question is about.",
    )


def _compare(comparison: Comparison) -> Part:
    measure, n = _measure_of(comparison), len(comparison.runs[0].benchmark)
    # As those of the better model to the worse.
    differences = [
        d if d.value >= 0 else replace(d, a=d.b, b=d.a, value=-d.value, low=-d.high, high=-d.low)
        for d in comparison.differences
        if d.measure == measure
    ]
    names = [f"{d.a} − {d.b}{'' if is_significant(d) else ' ?'}" for d in differences]
    ends = (Estimate(d.value, d.low, d.high, n, 0.0) for d in differences)
    by_pair = dict(zip(names, ends, strict=True))
    figure = drawn(
        "Differences",
        "Dot: the difference in points. Bar: its 95 % interval. Dashed: none. Undecided after Holm's "
        f"correction for {amount(len(differences), 'comparison')}: “?”.",
        "compare",
        figures.dots([("Differences (points)", by_pair)], list(by_pair), 1, width=_WIDTH),
    )
    behind: dict[str, list[str]] = {}
    for difference in differences:
        if is_significant(difference):
            behind.setdefault(difference.a, []).append(difference.b)
    sure = [f"{_names([name])} {_are([name])} ahead of {_names(its)}" for name, its in behind.items()]
    undecided = [d for d in differences if not is_significant(d)]
    open_ = [f"“{d.a}” against “{d.b}”, {100 * d.value:.1f} points apart" for d in undecided]
    conclusion = f"Decided: {'; '.join(sure)}. " if sure else "Nothing is decided. "
    conclusion += f"Not decided: {'; '.join(open_)}." if open_ else "Nothing is left open."
    return (
        "All models answered the same questions, so they are compared question by question. A difference "
        "counts as decided where its interval leaves out 0 and the paired test says so too.",
        [figure],
        conclusion,
    )


def _names(names: Sequence[str]) -> str:
    return listed([f"“{name}”" for name in names])


def _are(names: Sequence[str]) -> str:
    return "is" if len(names) == 1 and names[0] != "people" else "are"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
