"""Two processes that share a batch get the gradients, and the weights, of one that has it all."""

import os
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
import torch

import thumbnails
import whole_batches
from counterfoil.train.gradients import gather

WORLD = 2


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each of two processes found; whatever happens, none of them is left behind."""
    folder = tmp_path_factory.mktemp("processes")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "MASTER_"))
    } | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    path = [str(Path(whole_batches.__file__).parent), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, path))
    command = [sys.executable, whole_batches.__file__, str(WORLD), str(port), str(folder)]
    running = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    )  # fmt: skip
    try:
        said, _ = running.communicate(timeout=150)
        assert running.returncode == 0, said
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()
    return [torch.load(folder / f"{rank}.pt") for rank in range(WORLD)]


@pytest.mark.parametrize("case", whole_batches.CASES)
def test_two_processes_have_the_gradients_of_the_whole_batch(found, case):
    for chunk in whole_batches.CHUNKS:
        _, backbone, aim = whole_batches.made(case, dropout=0.3)
        all_rows = whole_batches.shares(aim, world=WORLD, accumulate=1)
        values, expected = whole_batches.in_one_graph(backbone, aim, all_rows, chunk=chunk)
        for share in found:
            said, gradient = share[case, chunk]
            assert said == pytest.approx(values, rel=1e-6)
            assert whole_batches.apart(gradient, expected) < 1e-6
        assert max(float(item.abs().max()) for item in expected.values()) > 1e-3


def test_two_processes_give_the_weights_of_one(found):
    one, journal, step = whole_batches.trained()
    two, its_journal, its_step = found[0]["training"]
    start = thumbnails.thumb(dropout=0.0).network.state_dict()
    assert all(torch.allclose(tensor, two[name], atol=1e-5, rtol=0) for name, tensor in one.items())
    assert any(not torch.allclose(start[name], one[name], atol=1e-3) for name in start)
    assert step == its_step
    for left, right in zip(journal, its_journal, strict=True):
        for name in ("step", "epoch", "lr", "loss", "validation_accuracy", "validation_loss"):
            assert left.get(name) == pytest.approx(right.get(name), abs=1e-4)


def test_without_gathering_the_halves_would_give_other_gradients():
    # Averaging two losses of half a batch is not the loss of the whole: the test above can fail.
    _, backbone, aim = whole_batches.made("coco", dropout=0.0)
    all_rows = whole_batches.shares(aim, world=WORLD, accumulate=1)
    _, whole = whole_batches.in_one_graph(backbone, aim, all_rows)
    one, other = (whole_batches.in_one_graph(backbone, aim, [rows])[1] for rows in all_rows)
    assert whole_batches.apart({name: (one[name] + other[name]) / 2 for name in one}, whole) > 0.01


def test_rows_are_gathered_rank_by_rank_in_full_precision(found):
    for share in found:
        assert share["half"].dtype == torch.float32
        assert share["half"].tolist() == [[0.5] * 3] * 2 + [[1.5] * 3] * 2


def test_on_one_device_nothing_happens():
    from lightning_fabric import Fabric

    tensor = torch.ones(2, 3)
    assert gather(tensor, None) is tensor
    assert gather(tensor, Fabric(accelerator="cpu", devices=1)) is tensor
