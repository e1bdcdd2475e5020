"""What it does to Winoground's human scores to collect votes until one answer has ten (docs/simulation.md).

    python benchmarks/stopping_rule.py ../shared/data/winoground/scores/human.jsonl

Of the shares that Winoground released of its crowd (section 4.3: "at least ten annotators"), 1,506 of 1,600
are k/n where the more frequent of the two answers has exactly ten votes: answers seem to have been collected
until one of the two had ten, so that n is 10 where all agree and up to 19 where they do not.

Everything is exact for given chances p of a yes: with the rule, a pair stops at m yes and j no with chance
C(m - 1 + j, j) p^m (1 - p)^j; with a fixed number its yes are binomial. The four pairs of a question are
answered independently of each other, so a question's chances are products and sums of these.
"""

import argparse
import json
import re
from pathlib import Path

import numpy as np
from scipy.special import betaln, gammaln, xlogy

#: Votes that a rule asks for; most votes that a share is taken for, and how near it must be to k/n.
TEN, MOST, NEAR = 10, 40, 1e-9
#: A pair of Winoground: the question, the caption's number and the image's.
PAIR = re.compile(r"(.+)_c([01])_i([01])")


def released(path: Path) -> np.ndarray:
    """(questions, captions, images) the share of yes."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    found: dict[str, np.ndarray] = {}
    for row in rows:
        question, caption, image = PAIR.fullmatch(row["label"]).groups()
        found.setdefault(question, np.full((2, 2), np.nan))[int(caption), int(image)] = row["score"]
    return np.stack(list(found.values()))


def share_votes(shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The yes and the votes behind each share: the fewest with ten or more for the more frequent answer."""
    yes, votes = np.zeros(len(shares), dtype=np.int64), np.zeros(len(shares), dtype=np.int64)
    for n in range(MOST, TEN - 1, -1):
        k = np.rint(shares * n).astype(np.int64)
        fits = (np.abs(k / n - shares) < NEAR) & (np.maximum(k, n - k) >= TEN)
        yes[fits], votes[fits] = k[fits], n
    assert votes.all(), "a share that is none of votes"
    return yes, votes


def share_chances(p: np.ndarray, rule: str) -> tuple[np.ndarray, np.ndarray]:
    """The shares that can come out, ascending, and how likely each is for a chance p of yes."""
    p = p[..., None]
    if rule == "ten for every pair":
        k = np.arange(TEN + 1)
        orders = gammaln(TEN + 1) - gammaln(k + 1) - gammaln(TEN - k + 1)
        return k / TEN, np.exp(orders + xlogy(k, p) + xlogy(TEN - k, 1 - p))
    j = np.arange(TEN)
    orders = gammaln(TEN + j) - gammaln(TEN) - gammaln(j + 1)
    yes, no = (np.exp(orders + xlogy(TEN, q) + xlogy(j, 1 - q)) for q in (p, 1 - p))
    shares = np.concatenate([j / (TEN + j), TEN / (TEN + j)])
    order = np.argsort(shares, kind="stable")
    return shares[order], np.concatenate([no, yes], axis=-1)[..., order]


def expected_scores(p: np.ndarray, rule: str) -> dict[str, float]:
    """Expected scores of questions where caption c and image i get a yes with chance p[q, c, i].

    Strict: a tie is not right. `tie` is the chance that at least one of the four comparisons of a question is
    one, `bias` the mean error of shares away from one half.
    """
    if rule == "endless votes":
        text = (p[:, 0, 0] > p[:, 1, 0]) & (p[:, 1, 1] > p[:, 0, 1])
        image = (p[:, 0, 0] > p[:, 0, 1]) & (p[:, 1, 1] > p[:, 1, 0])
        ties = np.stack([p[:, r, r] == p[:, c, i] for r in (0, 1) for c, i in ((0, 1), (1, 0))])
        scores = {"text": text, "image": image, "group": text & image, "tie": ties.any(axis=0)}
        return {name: float(each.mean()) for name, each in scores.items()} | {"bias": 0.0}
    shares, chances = share_chances(p, rule)
    below = np.cumsum(chances, axis=-1)
    above = 1 - below
    a, b, c, d = (0, 0), (1, 0), (0, 1), (1, 1)

    def beats(x: tuple[int, int], y: tuple[int, int]) -> np.ndarray:
        return (chances[:, *y] * above[:, *x]).sum(axis=-1)

    best = below[:, *b] * below[:, *c]
    most = np.diff(best, axis=-1, prepend=0)
    group = (most * above[:, *a] * above[:, *d]).sum(axis=-1)
    # No tie: neither right pair has a share that a wrong one has.
    free = np.zeros(len(p))
    for at in range(len(shares)):
        # By the share of one wrong pair, and that of the other.
        other = np.arange(len(shares)) != at
        equal, equal_d = (chances[:, *x][:, [at]] + other * chances[:, *x] for x in (a, d))
        free += chances[:, *b][:, at] * (chances[:, *c] * (1 - equal) * (1 - equal_d)).sum(axis=-1)
    mean = (chances * shares).sum(axis=-1)
    return {
        "text": float((beats(a, b) * beats(d, c)).mean()),
        "image": float((beats(a, c) * beats(d, b)).mean()),
        "group": float(group.mean()),
        "tie": float(1 - free.mean()),
        "bias": float(((mean - p) * np.sign(p - 0.5)).mean()),
    }


def fitted_chances(yes: np.ndarray, votes: np.ndarray, belongs: np.ndarray) -> np.ndarray:
    """The chance of a yes of each pair: the mean of its posterior under a beta distribution of its kind.

    The beta distribution of pairs that belong together and that of others are those of the largest
    likelihood, on a grid; where votes stop does not change it. These chances are less spread than the true
    ones, as those of a posterior's draws are more.
    """
    p = np.empty(len(yes))
    for kind in (True, False):
        here = np.flatnonzero(belongs == kind)
        k, rest = yes[here], votes[here] - yes[here]
        means, sizes = np.linspace(0.01, 0.99, 99), np.geomspace(0.2, 50, 60)
        a, b = (np.outer(sizes, each).ravel()[:, None] for each in (means, 1 - means))
        log = (betaln(a + k, b + rest) - betaln(a, b)).sum(axis=1)
        best = int(log.argmax())
        p[here] = (k + a[best]) / (k + rest + a[best] + b[best])
    return p


def main() -> None:
    """Print the scores that are to be expected by each rule, in per cent."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("shares", type=Path)
    shares = released(parser.parse_args().shares)
    yes, votes = share_votes(shares.ravel())
    for n in (TEN, TEN + 1):
        count = (np.maximum(yes, votes - yes) == n).sum()
        print(f"{count:,} shares with {n} votes for the more frequent answer")
    print(f"{votes.mean():.2f} votes per pair")
    belongs = np.broadcast_to(np.eye(2, dtype=bool), shares.shape).ravel()
    fitted = fitted_chances(yes, votes, belongs).reshape(shares.shape)
    for world, p in (("fitted", fitted), ("as released", shares)):
        for rule in ("endless votes", "until one answer has ten", "ten for every pair"):
            row = ", ".join(f"{name} {100 * each:.1f}" for name, each in expected_scores(p, rule).items())
            print(f"chances {world}, {rule}: {row}")


if __name__ == "__main__":
    main()
