"""Builds that are killed and started again end in the same bytes as one that was not."""

import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest


def _start(out, cache, command):
    arguments = ["build", *command, "--set", "read.size=32", "--set", "imagine.size=32"]
    arguments += ["--out", out, "--cache", cache, "--workers", 0, "--quiet"]
    return subprocess.Popen(
        [sys.executable, "-m", "counterfoil", *map(str, arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )


def _finish(process):
    _, errors = process.communicate(timeout=600)
    assert process.returncode == 0, errors.decode()


@pytest.mark.parametrize(("n", "kills"), [(14, 2), pytest.param(70, 20, marks=pytest.mark.slow)])
def test_a_killed_build_goes_on_to_identical_bytes(n, kills, tmp_path, digests):
    command = ["bivlc", "--n", n]
    whole, killed = tmp_path / "whole" / "b", tmp_path / "killed" / "b"
    began = time.monotonic()
    _finish(_start(whole, tmp_path / "cache-whole", command))
    seconds = time.monotonic() - began
    rng = np.random.default_rng(0)
    struck = 0
    for _ in range(kills):
        process = _start(killed, tmp_path / "cache-killed", command)
        try:
            process.communicate(timeout=rng.uniform(0.25, 1.0) * seconds)
            # It was through: the next one begins anew.
            shutil.rmtree(killed)
            shutil.rmtree(tmp_path / "cache-killed", ignore_errors=True)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.communicate()
            struck += 1
    _finish(_start(killed, tmp_path / "cache-killed", command))
    assert struck
    assert digests(killed) == digests(whole)
