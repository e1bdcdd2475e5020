"""Which negatives count: each rule against a slow loop, ties, and what must hold of any batch."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from counterfoil.train.losses import RULES, hardest, semi_hard, wrong  # noqa: E402

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


@pytest.mark.parametrize("rule", RULES)
def test_rules_go_with_the_rows(rule):
    # Distinct similarities: what counts does not depend on where a row stands in the batch.
    rng = np.random.default_rng(0)
    values = torch.tensor(rng.permutation(49).reshape(7, 7) / 49)
    order = torch.tensor(rng.permutation(7))
    shuffled = RULES[rule](values[order][:, order])
    assert torch.equal(shuffled, RULES[rule](values)[order][:, order])


def test_each_row_has_at_most_one_mined_negative_and_never_the_right_one():
    rng = np.random.default_rng(1)
    for n in (2, 6, 31):
        values = torch.tensor(rng.normal(size=(n, n)))
        assert not wrong(values).diagonal().any()
        assert (hardest(values).sum(1) == 1).all()
        mask = semi_hard(values)
        assert (mask.sum(1) <= 1).all()
        assert not mask.diagonal().any()
        # Rows whose right item is the least similar of all have nothing that is less similar.
        nothing = values.argmin(1) == torch.arange(n)
        assert torch.equal(mask.sum(1) == 0, nothing)


def test_a_batch_of_one_and_equal_scores():
    for rule in RULES.values():
        assert rule(torch.ones(1, 1)).tolist() == [[False]]
    equal = torch.zeros(3, 3)
    assert hardest(equal).int().tolist() == [[0, 1, 0], [1, 0, 0], [1, 0, 0]]
    assert not semi_hard(equal).any()


def test_masks_have_no_gradient():
    values = torch.randn(4, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    for rule in RULES.values():
        assert not rule(values).requires_grad
