"""Do 95 % intervals cover 95 %, and are p-values uniform, where captions repeat from never to always?

    python benchmarks/coverage.py [--repetitions 1000] [--quick]

Answers are right where a normal number is below a threshold; of its variance one share is its images' and one
its captions', and each model has half of every share in common with the other. There are two kinds of
question:

* choices about one image, between a right caption and a wrong one of the same pool, which may be right
elsewhere;
* quads of two images and two captions, the wrong image being the right one of another question.

Columns are the coverage of the interval of one model's share of right answers, of the interval of the
difference of two equally good models, and how often the test of that difference has p <= 5 % and p <= 50 %.
Captions that are in more than a quarter of the questions are taken as given (`given` counts them), and then
nothing is said of other captions: where captions decide, coverage of what others would give is low. Slow
tests ask the same.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy import ndarray
from scipy.special import ndtri

from counterfoil.stats.estimates import difference_bootstrap, spread
from counterfoil.stats.sharing import Sharing
from counterfoil.stats.tests import paired_permutation

Rng = np.random.Generator

#: The shares of variance that are the images' and the captions'.
EFFECTS = {"neither": (0.0, 0.0), "images": (0.3, 0.0), "captions": (0.0, 0.3), "both": (0.2, 0.2)}


@dataclass(frozen=True)
class Setting:
    """Questions of a form, over so many images with so many questions each, and so many distinct captions.

    `skew` makes captions as frequent as words are: the second half as often as the first, the third a third.
    """

    form: str
    images: int
    per_image: int
    captions: int
    effect: str
    p: float
    skew: bool = False

    @property
    def n(self) -> int:
        """How many questions."""
        return self.images * self.per_image


@dataclass(frozen=True)
class Found:
    """Shares of the repetitions: covered means and differences, and small p-values."""

    mean: float
    difference: float
    p05: float
    p50: float
    given: int
    effective: float


def sharing_of(setting: Setting, rng: Rng) -> Sharing:
    """What the questions share."""
    n, k = setting.n, setting.captions

    def drawn(pool: int) -> ndarray:
        if pool >= n:
            return np.arange(n)
        weights = 1 / np.arange(1, pool + 1) if setting.skew else np.ones(pool)
        return rng.choice(pool, size=n, p=weights / weights.sum())

    images = np.repeat(np.arange(setting.images), setting.per_image)
    if setting.form == "quad":
        other = np.roll(images, -setting.per_image)
        return Sharing(np.stack([images, other], axis=1), np.stack([drawn(k), k + n + drawn(k)], axis=1))
    # The wrong caption is of the same pool, and sometimes the right one of another question.
    return Sharing(images[:, None], np.stack([drawn(k), (drawn(k) + 1) % max(k, 2)], axis=1))


def answers(sharing: Sharing, setting: Setting, repetitions: int, rng: Rng) -> ndarray:
    """Right and wrong answers of two equally good models, (n, 2, repetitions)."""

    def normal(rows: int) -> ndarray:
        common, own = rng.normal(size=(rows, 1, repetitions)), rng.normal(size=(rows, 2, repetitions))
        return (common + own) / np.sqrt(2)

    shares = EFFECTS[setting.effect]
    total = np.sqrt(1 - sum(shares)) * normal(len(sharing))
    for share, items in zip(shares, (sharing.images, sharing.captions), strict=True):
        if share:
            effects = normal(int(items.max()) + 1)
            total += np.sqrt(share / items.shape[1]) * sum(effects[column] for column in items.T)
    return (total < ndtri(setting.p)).astype(np.float64)


def measured(setting: Setting, *, repetitions: int, seed: int = 0, designs: int = 8) -> Found:
    """Coverage and small p-values over repetitions, in as many layouts of the questions as `designs`."""
    rng, found = np.random.default_rng(seed), []
    each = -(-repetitions // designs)
    for _ in range(designs):
        sharing = sharing_of(setting, rng)
        values = answers(sharing, setting, each, rng).reshape(len(sharing), -1)
        pairs = np.stack([np.arange(each), np.arange(each) + each], axis=1)
        one = spread(values[:, :each], sharing, seed=seed, draws=500)
        low, high = one.wilson(0.95)
        least, most = difference_bootstrap(values, sharing, pairs, seed=seed, draws=500)
        p = paired_permutation(values, sharing, pairs, seed=seed, draws=499)
        found.append(
            Found(
                float(((low <= setting.p) & (setting.p <= high)).mean()),
                float(((least <= 0) & (most >= 0)).mean()),
                float((p <= 0.05).mean()),
                float((p <= 0.5).mean()),
                int(sharing.given_captions.sum()),
                float(np.median(one.effective())),
            )
        )
    return Found(*(float(np.mean([getattr(f, name) for f in found])) for name in Found.__annotations__))  # type: ignore[arg-type]


def pools(n: int) -> list[int]:
    """How many distinct captions: from one for each question to a single one."""
    return sorted({n, n // 2, round(n**0.5), 10, 5, 2, 1}, reverse=True)


def settings(quick: bool) -> Iterator[Setting]:
    """The settings of the tables."""
    layouts = [(20, 1), (20, 5), (200, 1), (200, 2), (200, 5), (1000, 2), (5000, 2)]
    for form in ("choice", "quad"):
        for images, per_image in layouts[3:4] if quick else layouts:
            for captions in pools(images * per_image):
                for effect in EFFECTS:
                    # The largest layout with one share of right answers, for time.
                    for p in (0.8,) if quick or images == 5000 else (0.5, 0.8, 0.95):
                        yield Setting(form, images, per_image, captions, effect, p)
    for captions in (1000, 31, 10):
        for effect in EFFECTS:
            yield Setting("choice", 500, 2, captions, effect, 0.8, skew=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--quick", action="store_true", help="one layout of each form")
    chosen = parser.parse_args()
    print("coverage of nominal 95 % intervals, and how often p is at most .05 and .50, in per cent")
    print("form    images  each  captions  effects of  right  given  effective   mean   diff   p05   p50")
    for setting in settings(chosen.quick):
        repetitions = min(chosen.repetitions, 200) if setting.n >= 10_000 else chosen.repetitions
        f = measured(setting, repetitions=repetitions)
        skew = "*" if setting.skew else " "
        print(
            f"{setting.form:6} {setting.images:7,} {setting.per_image:5} {setting.captions:8,}{skew} "
            f"{setting.effect:>11} {100 * setting.p:6.0f} {f.given:6.1f} {f.effective:10,.0f} "
            f"{100 * f.mean:6.1f} {100 * f.difference:6.1f} {100 * f.p05:5.1f} {100 * f.p50:5.1f}",
            flush=True,
        )
    print("* captions as unequally frequent as words: the k-th 1/k as often as the first")


if __name__ == "__main__":
    main()
