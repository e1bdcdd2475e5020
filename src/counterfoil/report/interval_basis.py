"""The basis of intervals: numbers of images, captions and effective questions, and warnings."""

from collections.abc import Sequence

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Gallery, Rated
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.result import Result
from counterfoil.report.labels import measure_label

#: Intervals from fewer images, captions or effective questions than these cover less than they say where most
#: answers are right and items decide much (docs/statistics.md).
FEW = 20


def resting(benchmark: Benchmark, results: Sequence[Result]) -> str:
    """How much the intervals of some results on one benchmark rest on, in a sentence without a stop.

    The effective number of questions is that of the last main measure which has one, over all results.

    >>> from counterfoil.world.sample import quads
    >>> resting(quads(40, seed=0), [])
    'intervals rest on 64 images and 80 captions'
    """
    images, captions = benchmark.sharing.counts
    parts = [f"{images:,} {'image' if images == 1 else 'images'}"]
    if captions:
        parts.append(f"{captions:,} {'caption' if captions == 1 else 'captions'}")
    text = f"intervals rest on {' and '.join(parts)}"
    measure, effective = _effective(benchmark, results)
    if not effective:
        return text
    low, high = (f"{round(each):,}" for each in (min(effective), max(effective)))
    what = benchmark.questions.units
    many = low if low == high else f"{low} to {high}"
    return f"{text}; {measure_label(measure)}: {many} effective {what}"


def rests_on(benchmark: Benchmark, results: Sequence[Result]) -> list[str]:
    """Both: first what intervals rest on, then the warnings."""
    return [resting(benchmark, results), *warnings(benchmark, results)]


def warnings(benchmark: Benchmark, results: Sequence[Result]) -> list[str]:
    """What is taken as given, and what there are too few of; without a stop.

    >>> from counterfoil.world.sample import quads
    >>> warnings(quads(9, seed=0), [])
    ['few images (14) and captions (18): intervals are rough, and may be too narrow']
    """
    sharing = benchmark.sharing
    methods = {str(result.provenance.get("interval", {}).get("method", "")) for result in results}
    found = []
    given = int(sharing.given_images.sum()), int(sharing.given_captions.sum())
    if methods <= {"wilson", "crossed"}:
        for many, kind in zip(given, ("image", "caption"), strict=True):
            if many:
                those, them = (f"1 {kind} is", "it") if many == 1 else (f"{many} {kind}s are", "them")
                found.append(
                    f"{those} in so many questions that intervals take {them} as given: they say nothing of "
                    f"other {kind}s"
                )
    images, captions = sharing.counts
    of_captions = captions - given[1] if not isinstance(benchmark.questions, Rated | Gallery) else 0
    few = [
        f"{kind} ({many})" for kind, many in (("images", images), ("captions", of_captions)) if 0 < many < FEW
    ]
    _, effective = _effective(benchmark, results)
    if effective and min(effective) < FEW:
        few.append(f"effective questions ({min(effective):.0f})")
    if few:
        listed = few[0] if len(few) == 1 else f"{', '.join(few[:-1])} and {few[-1]}"
        found.append(f"few {listed}: intervals are rough, and may be too narrow")
    return found


def _effective(benchmark: Benchmark, results: Sequence[Result]) -> tuple[str, list[float]]:
    """A measure, and its effective numbers of questions in all results that have one."""
    for measure in reversed(main_measures(benchmark)):
        found = [
            result.measures[measure].effective
            for result in results
            if measure in result.measures and result.measures[measure].effective is not None
        ]
        if found:
            return measure, [each for each in found if each is not None]
    return "", []
