"""Do 95 % intervals cover 95 %, where images are few or unequal, and captions repeat from never to always?

    python benchmarks/coverage.py [--seed N] [--repetitions 1600] [--tables forms macro] [--sweep]

Prints the coverage where 54 images have from 40 questions to one (the k-th has 40 / k), then the tables of
docs/statistics.md, each with the standard error that so many repetitions leave. Answers
are right where a normal number is below a threshold; of its variance one share is its images' and one its
captions', and each model has half of every share in common with the other. There are these kinds of question:

* `caption`: of one image and one caption;
* `choice` and `six`: between a right caption and one wrong one, or five, of the same pool, which may be right
elsewhere;
* `quad`: of two images and two captions, the wrong image being the right one of another question.

Cells are the coverage of the interval of one model's share of right answers, of the interval of the
difference of two equally good models, and how often the test of that difference has p <= 5 %. Captions that
are in more than a quarter of the questions are taken as given, and then nothing is said of other captions:
where captions decide, coverage of what others would give is low. Correlations are between scores and ratings
of such questions, and between the orders of models on two benchmarks. `--sweep` goes through all layouts, for
hours. Slow tests ask the same.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from numpy import ndarray
from scipy.special import ndtri

from counterfoil.benchmarks.answers import Outcomes, Scores
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Choice, Rated
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.evaluation.forms import rated
from counterfoil.evaluation.rank_correlation import rank_correlation
from counterfoil.evaluation.result import Result, Run
from counterfoil.stats.dependence import Dependence
from counterfoil.stats.intervals import differences, spread

Rng = np.random.Generator

#: The shares of variance that are the images' and the captions'.
EFFECTS = {"neither": (0.0, 0.0), "images": (0.3, 0.0), "captions": (0.0, 0.3), "both": (0.2, 0.2)}

#: Wrong captions of a choice among six, and which part of what captions decide the right one does: a normal
#: number less the highest of five has so much of its variance from the first.
WRONG, RIGHT = 5, 0.69

#: Questions of the largest image, where images have unequal numbers.
LARGEST = 40
#: Unequal numbers of questions of an image, and of how many images.
SHAPES, CLUSTERS = ("equal", "geometric", "words", "giant"), (25, 60, 400)


@dataclass(frozen=True)
class Setting:
    """Questions of a form, over so many images with so many questions each, and so many distinct captions.

    `skew` makes captions as frequent as words are: the second half as often as the first, the third a third.
    With `groups` the share is the mean over so many groups, each half as large as the one before it. `shape`
    says how many questions the images have: `equal` as many each; `geometric` in equal steps of a ratio from
    40 to one; `words` 40, 20, 13, ..., 40 / k; `giant` as many each, and the first a fifth of all.
    """

    form: str
    images: int
    per_image: int
    captions: int
    effect: str
    p: float
    skew: bool = False
    groups: int = 1
    shape: str = "equal"

    @property
    def sizes(self) -> ndarray:
        """How many questions each image has."""
        place = np.arange(self.images)
        if self.shape == "geometric":
            return np.rint(LARGEST ** (1 - place / (self.images - 1))).astype(np.int64)
        if self.shape == "words":
            return np.maximum(np.rint(LARGEST / (place + 1)), 1).astype(np.int64)
        found = np.full(self.images, self.per_image)
        if self.shape == "giant":
            found[0] = max(self.per_image, (self.images - 1) * self.per_image // 4)
        return found

    @property
    def n(self) -> int:
        """How many questions."""
        return int(self.sizes.sum())


@dataclass(frozen=True)
class Found:
    """Shares of the repetitions: covered means and differences, and small p-values.

    `error` is the standard error of the coverage of means, from how layouts differ.
    """

    mean: float
    difference: float
    p05: float
    p50: float
    given: int
    effective: float
    error: float = 0.0


def dependence_of(setting: Setting, rng: Rng) -> Dependence:
    """What the questions share."""
    n, k = setting.n, setting.captions

    def drawn(pool: int) -> ndarray:
        if pool >= n:
            return np.arange(n)
        weights = 1 / np.arange(1, pool + 1) if setting.skew else np.ones(pool)
        return rng.choice(pool, size=n, p=weights / weights.sum())

    images = np.repeat(np.arange(setting.images), setting.sizes)
    if setting.form == "quad":
        other = np.roll(images, -setting.per_image)
        return Dependence(np.stack([images, other], axis=1), np.stack([drawn(k), k + n + drawn(k)], axis=1))
    if setting.form == "caption":
        return Dependence(images[:, None], drawn(k)[:, None])
    # Wrong captions are of the same pool, and sometimes the right ones of another question.
    right = drawn(k)
    if setting.form == "six":
        steps = rng.permuted(np.tile(np.arange(1, k), (n, 1)), axis=1)[:, :WRONG]
        return Dependence(images[:, None], np.hstack([right[:, None], (right[:, None] + steps) % k]))
    return Dependence(images[:, None], np.stack([right, (drawn(k) + 1) % max(k, 2)], axis=1))


def answers(dependence: Dependence, setting: Setting, repetitions: int, rng: Rng) -> ndarray:
    """Right and wrong answers of two equally good models, (n, 2, repetitions)."""

    def normal(rows: int) -> ndarray:
        common, own = rng.normal(size=(rows, 1, repetitions)), rng.normal(size=(rows, 2, repetitions))
        return (common + own) / np.sqrt(2)

    shares = EFFECTS[setting.effect]
    total = np.sqrt(1 - sum(shares)) * normal(len(dependence))
    for share, items in zip(shares, (dependence.images, dependence.captions), strict=True):
        if share:
            effects = normal(int(items.max()) + 1)
            parts = np.full(items.shape[1], 1 / items.shape[1])
            if setting.form == "six" and items.shape[1] > 1:
                parts = np.array([RIGHT, *[(1 - RIGHT) / WRONG] * WRONG])
            for part, column in zip(parts, items.T, strict=True):
                total += np.sqrt(share * part) * effects[column]
    return (total < ndtri(setting.p)).astype(np.float64)


def measured(setting: Setting, *, repetitions: int, seed: int = 0, designs: int = 8) -> Found:
    """Coverage and small p-values over repetitions, in as many layouts of the questions as `designs`."""
    rng, found = np.random.default_rng(seed), []
    each = -(-repetitions // designs)
    groups = None
    if setting.groups > 1:
        groups = np.minimum(-np.log2(np.linspace(1, 0, setting.n, endpoint=False)), setting.groups - 1)
        groups = rng.permutation(groups.astype(np.int64))
    for _ in range(designs):
        dependence = dependence_of(setting, rng)
        values = answers(dependence, setting, each, rng).reshape(len(dependence), -1)
        pairs = np.stack([np.arange(each), np.arange(each) + each], axis=1)
        one = spread(values[:, :each], dependence, groups=groups)
        low, high = one.wilson()
        least, most, p = differences(values.T[:, :, None], dependence, pairs, groups=groups)[1:, :, 0]
        found.append(
            Found(
                float(((low <= setting.p) & (setting.p <= high)).mean()),
                float(((least <= 0) & (most >= 0)).mean()),
                float((p <= 0.05).mean()),
                float((p <= 0.5).mean()),
                int(dependence.given_captions.sum()),
                float(np.median(one.effective())),
            )
        )
    means = {name: float(np.mean([getattr(f, name) for f in found])) for name in Found.__annotations__}
    means["error"] = float(np.std([f.mean for f in found], ddof=1) / designs**0.5)
    return Found(**means)  # type: ignore[arg-type]


def pools(n: int) -> list[int]:
    """How many distinct captions: from one for each question to a single one."""
    return sorted({n, n // 2, round(n**0.5), 10, 5, 2, 1}, reverse=True)


def settings() -> Iterator[Setting]:
    """The settings of the tables."""
    layouts = [(20, 1), (20, 5), (200, 1), (200, 2), (200, 5), (1000, 2), (5000, 2)]
    for form in ("choice", "quad"):
        for images, per_image in layouts:
            for captions in pools(images * per_image):
                for effect in EFFECTS:
                    # The largest layout with one share of right answers, for time.
                    for p in (0.8,) if images == 5000 else (0.5, 0.8, 0.95):
                        yield Setting(form, images, per_image, captions, effect, p)
    for captions in (1000, 31, 10):
        for effect in EFFECTS:
            yield Setting("choice", 500, 2, captions, effect, 0.8, skew=True)


def items(n: int, kind: str) -> tuple[str, ...]:
    """Names of so many items."""
    return tuple(f"{kind}{i}" for i in range(n))


def benchmark_of(name: str, dependence: Dependence, ratings: ndarray | None = None) -> Benchmark:
    """Questions of one image and one caption: with ratings rated captions, without a choice of two."""
    image, caption = dependence.images[:, 0], dependence.captions[:, 0]
    n, own = len(image), int(caption.max()) + 1
    images = tuple(Image(key) for key in items(int(image.max()) + 1, "i"))
    if ratings is not None:
        captions = tuple(Caption(key, key) for key in items(own, "c"))
        judged = Rated(items(n, "q"), captions=caption, images=image, ratings=ratings[:, None])
        return Benchmark(Card(name=name, title=name, form="rated"), images, captions, judged)
    # The wrong captions are all different, and decide nothing.
    captions = tuple(Caption(key, key) for key in items(own + n, "c"))
    wrong = np.stack([caption, own + np.arange(n)], axis=1)
    questions = Choice(items(n, "q"), query=image, candidates=wrong)
    return Benchmark(Card(name=name, title=name, form="choice"), images, captions, questions)


def correlations_cover(setting: Setting, *, repetitions: int, seed: int, truth: float = 0.5) -> list[float]:
    """Coverage of tau-b, Spearman's and Pearson's correlation of scores and ratings, normal ones.

    Then of the differences of two metrics' correlations, which are equally good.
    """
    expected = {
        "kendall_tau_b": 2 / np.pi * np.arcsin(truth),
        "spearman": 6 / np.pi * np.arcsin(truth / 2),
        "pearson": truth,
    }
    rng, covered = np.random.default_rng(seed), np.zeros(2 * len(expected))

    def together(rows: int) -> ndarray:
        rating, *others = rng.normal(size=(3, rows))
        return np.stack([rating, *(truth * rating + (1 - truth**2) ** 0.5 * other for other in others)])

    shares = EFFECTS[setting.effect]
    # Thousands of points take seconds each.
    repetitions = repetitions if setting.images < 400 else max(16, repetitions // 10)
    for _ in range(repetitions):
        dependence = dependence_of(setting, rng)
        both = np.sqrt(1 - sum(shares)) * together(len(dependence))
        for share, of in zip(shares, (dependence.images[:, 0], dependence.captions[:, 0]), strict=True):
            both += np.sqrt(share) * together(int(of.max()) + 1)[:, of]
        benchmark = benchmark_of("rated", dependence, both[0])
        found = rated.measured(
            benchmark, Scores(both[1]), np.ones(len(dependence), bool), list(expected), draws=300, seed=seed
        )
        result = Result("rated", "", {}, ties={"policy": "strict"})
        runs = [
            Run(name, benchmark, Scores(each), {}, result, {})
            for name, each in zip("ab", both[1:], strict=True)
        ]
        _, low, high, _ = rated.RatedEvaluation().differences(runs, dependence, [(0, 1)], list(expected))
        covered += [
            *(found[name].low <= value <= found[name].high for name, value in expected.items()),
            *((low[0] <= 0) & (high[0] >= 0)),
        ]
    return list(covered / repetitions)


def orders_cover(
    setting: Setting, *, repetitions: int, seed: int, models: int = 10, truth: float = 0.7
) -> list[float]:
    """Coverage of tau and of Spearman's correlation between models' abilities, drawn anew, on two benchmarks.

    Ability is the threshold below which an answer is right; the two are normal with this correlation.
    """
    expected = 2 / np.pi * np.arcsin(truth), 6 / np.pi * np.arcsin(truth / 2)
    rng, covered = np.random.default_rng(seed), np.zeros(2)
    shares = EFFECTS[setting.effect]
    for _ in range(repetitions):
        ability = rng.multivariate_normal([0, 0], [[1, truth], [truth, 1]], size=models)
        runs = []
        for name, able in zip(("one", "two"), ability.T, strict=True):
            dependence = dependence_of(setting, rng)
            hard = np.sqrt(1 - sum(shares)) * rng.normal(size=(len(dependence), models))
            for share, of in zip(shares, (dependence.images[:, 0], dependence.captions[:, 0]), strict=True):
                hard += np.sqrt(share) * rng.normal(size=(int(of.max()) + 1, models))[of]
            right = (hard < ability_to_threshold(able)).astype(np.float64)
            benchmark = benchmark_of(name, dependence)
            result = Result(name, "", {}, ties={"policy": "strict"})
            runs += [
                Run(key, benchmark, Outcomes(), {"accuracy": column}, result, {})
                for key, column in zip(items(models, "m"), right.T, strict=True)
            ]
        (pair,) = rank_correlation(runs, measures=["accuracy"], draws=300, seed=seed).pairs
        ends = (pair.tau_low, pair.tau_high), (pair.rho_low, pair.rho_high)
        covered += [low <= value <= high for (low, high), value in zip(ends, expected, strict=True)]
    return list(covered / repetitions)


def ability_to_threshold(ability: ndarray) -> ndarray:
    """Abilities as thresholds that make 60 to 80 % of the answers right."""
    return 0.5 + 0.3 * ability


@dataclass(frozen=True)
class Cells:
    """A table: a row per label, a cell per effect, and what the numbers of a cell are."""

    title: str
    numbers: str
    rows: dict[str, dict[str, Setting]]
    measure: Callable[..., Sequence[float]]
    #: Of the repetitions, since some are slow.
    share: float = 1.0


def shares_cover(setting: Setting, *, repetitions: int, seed: int) -> list[float]:
    """What `measured` finds, as a cell."""
    found = measured(setting, repetitions=repetitions, seed=seed)
    return [found.mean, found.difference, found.p05]


def tables() -> dict[str, Cells]:
    """The tables of docs/statistics.md."""

    def rows(form: str, images: int, each: int, pool: Sequence[int], p: float, **other: int) -> dict:
        return {
            f"{form}, {k}": {e: Setting(form, images, each, k, e, p, **other) for e in EFFECTS} for k in pool
        }

    def unequal(p: float, columns: dict[str, dict[str, int]]) -> dict:
        return {
            f"{shape}, {many}": {
                effect: Setting("caption", many, 5, 10**9, effect, p, shape=shape, **columns[effect])
                for effect in columns
            }
            for shape in SHAPES
            for many in CLUSTERS
        }

    of_means, alone = "mean, difference, p <= .05", {"neither": {}, "images": {}}
    return {
        "unequal": Cells(
            "images of unequal numbers of questions; 80 % right", of_means, unequal(0.8, alone), shares_cover
        ),
        "unequal groups": Cells(
            "the same, the mean over four groups, each half as large as the last",
            of_means,
            unequal(0.8, {effect: {"groups": 4} for effect in alone}),
            shares_cover,
        ),
        "unequal ratings": Cells(
            "the same images, correlations of .5 with ratings, and differences of two equally good metrics",
            "tau-b, Spearman, Pearson; differences of the same",
            unequal(0.5, alone),
            correlations_cover,
            3 / 8,
        ),
        "repeats": Cells(
            "500 images with two questions each, of one caption; 70 % right",
            of_means,
            rows("caption", 500, 2, (1000, 500, 31, 10, 6, 2), 0.7),
            shares_cover,
        ),
        "forms": Cells(
            "200 images with two questions each; 80 % right",
            of_means,
            {**rows("choice", 200, 2, (400, 20, 10), 0.8), **rows("quad", 200, 2, (400, 20, 10), 0.8)},
            shares_cover,
        ),
        "six": Cells(
            "choices among six captions; 200 images with two questions each; 80 % right",
            of_means,
            rows("six", 200, 2, (400, 40, 20, 10), 0.8),
            shares_cover,
        ),
        "macro": Cells(
            "the mean over four groups, each half as large as the last; 200 images with two; 80 % right",
            of_means,
            rows("caption", 200, 2, (400, 40, 10), 0.8, groups=4),
            shares_cover,
        ),
        "few": Cells(
            "20 images with five questions each, of one caption; 80 % right",
            of_means,
            rows("caption", 20, 5, (100, 20, 10), 0.8),
            shares_cover,
        ),
        "hard": Cells(
            "200 images with two questions each, of one caption; 95 % right; * captions as frequent as words",
            of_means,
            {
                **rows("caption", 200, 2, (31, 10), 0.95),
                **{f"{key} *": row for key, row in rows("caption", 200, 2, (31,), 0.95, skew=True).items()},
            },
            shares_cover,
        ),
        "ratings": Cells(
            "correlations of .5 with ratings; 150 images with two captions each",
            "tau-b, Spearman, Pearson; differences of the same",
            rows("caption", 150, 2, (300, 60, 25), 0.5),
            correlations_cover,
            3 / 8,
        ),
        "orders": Cells(
            "orders of ten models on two benchmarks of 200 images with two questions each",
            "tau, Spearman",
            rows("caption", 200, 2, (400, 40), 0.5),
            orders_cover,
            1 / 16,
        ),
    }


def show(cells: Cells, repetitions: int, seed: int) -> None:
    """Print one table, its numbers in per cent."""
    many = max(16, round(repetitions * cells.share))
    begin = perf_counter()
    error = 100 * (0.95 * 0.05 / many) ** 0.5
    print(
        f"\n{cells.title}\n{cells.numbers}; {many:,} repetitions, seed {seed}; standard error {error:.1f}\n"
    )
    effects = next(iter(cells.rows.values()))
    print(f"| | {' | '.join(effects)} |")
    print(f"| --- |{' --- |' * len(effects)}")
    for label, by_effect in cells.rows.items():
        found = [cells.measure(setting, repetitions=many, seed=seed) for setting in by_effect.values()]
        written = (", ".join(f"{100 * number:.1f}" for number in one) for one in found)
        print(f"| {label} | {' | '.join(written)} |", flush=True)
    print(f"\n{perf_counter() - begin:.0f} s")


def acceptance(repetitions: int, seed: int) -> Found:
    """54 images, of which the k-th has 40 / k questions; answers are alike by image."""
    return measured(
        Setting("caption", 54, 1, 10**9, "images", 0.8, shape="words"), repetitions=repetitions, seed=seed
    )


def sweep(repetitions: int, seed: int) -> None:
    """Print a line per setting of all layouts."""
    print("coverage of nominal 95 % intervals, and how often p is at most .05 and .50, in per cent")
    print(
        "form    images  each  captions  effects of  right  given  effective   mean    +-   diff   p05   p50"
    )
    for setting in settings():
        many = min(repetitions, 200) if setting.n >= 10_000 else repetitions
        f = measured(setting, repetitions=many, seed=seed)
        skew = "*" if setting.skew else " "
        print(
            f"{setting.form:6} {setting.images:7,} {setting.per_image:5} {setting.captions:8,}{skew} "
            f"{setting.effect:>11} {100 * setting.p:6.0f} {f.given:6.1f} {f.effective:10,.0f} "
            f"{100 * f.mean:6.1f} {100 * f.error:5.1f} {100 * f.difference:6.1f} {100 * f.p05:5.1f} "
            f"{100 * f.p50:5.1f}",
            flush=True,
        )
    print("* captions as unequally frequent as words: the k-th 1/k as often as the first")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1600)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--tables", nargs="*", choices=list(tables()), help="only these")
    parser.add_argument("--sweep", action="store_true", help="every layout, instead of the tables")
    chosen = parser.parse_args()
    if chosen.sweep:
        sweep(chosen.repetitions, chosen.seed)
        return
    found = acceptance(600, chosen.seed)
    print(
        f"54 images of {LARGEST} to 1 questions, 600 draws of the data: 95 % intervals cover "
        f"{100 * found.mean:.1f} % (values) and {100 * found.difference:.1f} % (differences); "
        "wanted: 93 to 98"
    )
    for name, cells in tables().items():
        if not chosen.tables or name in chosen.tables:
            show(cells, chosen.repetitions, chosen.seed)


if __name__ == "__main__":
    main()
