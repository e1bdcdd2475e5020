"""Which negatives count: each rule against a slow loop, ties, and what must hold of any batch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from counterfoil.train.losses import RULES  # noqa: E402

pytestmark = pytest.mark.models


def slow(similarity: list[list[float]], rule: str) -> list[list[bool]]:
    """Row by row in plain Python."""
    n = len(similarity)
    mask = [[False] * n for _ in range(n)]
    for i in range(n):
        others = [j for j in range(n) if j != i]
        if rule == "sum":
            for j in others:
                mask[i][j] = True
            continue
        if rule == "semi-hard":
            others = [j for j in others if similarity[i][j] < similarity[i][i]]
        best = None
        for j in others:
            if best is None or similarity[i][j] > similarity[i][best]:
                best = j
        if best is not None:
            mask[i][best] = True
    return mask


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("levels", [3, 1000])
def test_rules_agree_with_a_slow_loop(rule, levels):
    # Three levels leave ties in nearly every row.
    rng = np.random.default_rng(levels)
    for n in (1, 2, 3, 5, 9, 16) * 5:
        values = (rng.integers(0, levels, (n, n)) / levels).tolist()
        assert RULES[rule](torch.tensor(values)).tolist() == slow(values, rule)


def test_masks_have_no_gradient():
    values = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for rule in RULES.values():
        assert not rule(values).requires_grad
