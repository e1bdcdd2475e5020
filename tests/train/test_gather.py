"""Two processes that share a batch get the gradients of one that has it all."""

import importlib.util
import os
import socket
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from counterfoil.train.optim import gather  # noqa: E402

pytestmark = pytest.mark.models
SCRIPT = Path(__file__).with_name("gathering.py")


@pytest.fixture(scope="module")
def gathering() -> ModuleType:
    spec = importlib.util.spec_from_file_location("train_gathering", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["train_gathering"] = module
    spec.loader.exec_module(module)
    return module


def together(folder: Path, world: int) -> list[dict]:
    """What each of several processes found; whatever happens, none of them is left behind."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "MASTER_"))
    } | {"OMP_NUM_THREADS": "1", "GLOO_SOCKET_IFNAME": "lo"}
    files = [folder / f"{rank}.pt" for rank in range(world)]
    logs = [folder / f"{rank}.log" for rank in range(world)]
    running = []
    try:
        for rank in range(world):
            command = [sys.executable, str(SCRIPT), str(world), str(rank), str(port), str(files[rank])]
            with logs[rank].open("w") as log:
                running.append(
                    subprocess.Popen(command, env=environment, stdout=log, stderr=subprocess.STDOUT)
                )
        for process, log in zip(running, logs, strict=True):
            assert process.wait(timeout=150) == 0, log.read_text()
    finally:
        for process in running:
            process.kill()
            process.wait()
    return [torch.load(file) for file in files]


def test_two_processes_have_the_gradients_of_one_with_the_whole_batch(gathering, tmp_path):
    shares = together(tmp_path, 2)
    alone = gathering.Towers()
    for name in gathering.LOSSES:
        whole = gathering.gradients(name, alone, 1, 0, lambda tensor: gather(tensor, None))
        if name != "hardest":
            assert all(each.abs().max() > 1e-4 for each in whole[1:3])
        for share in shares:
            for got, expected in zip(share[name], whole, strict=True):
                torch.testing.assert_close(got, expected, rtol=1e-9, atol=1e-12)
    for share in shares:
        # Rank by rank, and in full precision from here on.
        assert share["half"].dtype == torch.float32
        assert share["half"].tolist() == [[0.5] * 3] * 2 + [[1.5] * 3] * 2


def test_without_gathering_the_halves_would_give_other_gradients(gathering):
    # Averaging two losses of half a batch is not the loss of the whole: the test above can fail.
    towers = gathering.Towers()
    whole = gathering.gradients("info_nce", towers, 1, 0, lambda tensor: tensor)
    halves = [gathering.gradients("info_nce", towers, 2, rank, lambda tensor: tensor) for rank in (0, 1)]
    average = (halves[0][1] + halves[1][1]) / 2
    assert (average - whole[1]).abs().max() > 1e-3


def test_on_one_device_nothing_happens():
    from lightning_fabric import Fabric

    tensor = torch.ones(2, 3)
    assert gather(tensor, None) is tensor
    assert gather(tensor, Fabric(accelerator="cpu", devices=1)) is tensor
