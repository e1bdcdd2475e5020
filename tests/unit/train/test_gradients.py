"""A step of several batches, or of chunks, has the gradient of one step with all rows, whatever the loss."""

from functools import partial

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

import whole_batches
from counterfoil.errors import InputError
from counterfoil.train.gradients import check_chunk, joined
from refusals import refuses
from whole_batches import CASES, ROWS, apart, batch, in_one_graph, made, shares

pytestmark = pytest.mark.models

#: Batches of a step, and rows of a chunk: some divide the batch, some leave a smaller one.
CUTS = [(1, 1), (1, 5), (3, None), (2, 4)]
by_steps = partial(whole_batches.by_steps, fabric=Fabric(accelerator="cpu", devices=1))


@pytest.mark.parametrize("case", CASES)
def test_parts_have_the_gradient_of_all_their_rows_with_dropout(case):
    _, backbone, aim = made(case, dropout=0.3)
    for turns, chunk in CUTS[1:]:
        (rows,) = all_rows = shares(aim, world=1, accumulate=turns)
        values, expected = in_one_graph(backbone, aim, all_rows, chunk=chunk)
        said, result = by_steps(backbone, aim, rows, chunk=chunk)
        assert said == pytest.approx(values, rel=1e-6)
        assert apart(result, expected) < 1e-6
    # Dropout did draw, and there is something to agree on.
    assert apart(by_steps(made(case, dropout=0.0)[1], aim, rows, chunk=chunk)[1], expected) > 1e-3
    assert max(float(item.abs().max()) for item in expected.values()) > 1e-3


@pytest.mark.parametrize("case", CASES)
def test_without_dropout_it_is_the_step_of_the_large_batch(case):
    _, backbone, aim = made(case, dropout=0.0)
    values, expected = by_steps(backbone, aim, [batch(aim, np.arange(ROWS))])
    for turns, chunk in CUTS:
        said, result = by_steps(backbone, aim, shares(aim, world=1, accumulate=turns)[0], chunk=chunk)
        assert said == pytest.approx(values, rel=1e-6)
        assert apart(result, expected) < 1e-6


def test_random_numbers_go_on_after_those_of_the_step():
    # As if every batch had gone forward once, and the loss had drawn after them.
    _, backbone, aim = made("pcme", dropout=0.3)
    all_rows = shares(aim, world=1, accumulate=3)
    by_steps(backbone, aim, all_rows[0])
    after = torch.rand(3)
    in_one_graph(backbone, aim, all_rows)
    assert torch.equal(torch.rand(3), after)


def test_batch_norm_counts_each_batch_once():
    _, backbone, aim = made("coco", dropout=0.0)
    norm = torch.nn.BatchNorm1d(32).double()
    backbone.network.image[2] = norm
    (rows,) = shares(aim, world=1, accumulate=3)
    by_steps(backbone, aim, rows)
    twin = torch.nn.BatchNorm1d(32).double()
    for item in rows:
        with torch.no_grad():
            twin(backbone.network.image[:2](item.pixels))
    assert norm.num_batches_tracked == 3
    assert torch.allclose(norm.running_mean, twin.running_mean)
    assert torch.allclose(norm.running_var, twin.running_var)


def test_one_answer_is_left_as_it_is():
    _, backbone, aim = made("pvse", dropout=0.0)
    item = batch(aim, np.arange(4))
    answer = backbone.network(item.pixels, item.tokens)
    assert joined([answer], image_roles=1, text_roles=1) is answer
    assert answer.images.attention is not None
    assert joined([answer, answer], image_roles=1, text_roles=1).images.attention is None


@pytest.mark.parametrize(("chunk", "processes"), [(0, 1), (9, 1), (5, 2)])
def test_a_chunk_is_no_larger_than_the_batch(chunk, processes):
    refuses(f"{chunk} rows, of {8 // processes}", check_chunk, chunk, 8, processes, error=InputError)
