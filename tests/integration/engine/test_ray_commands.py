"""Commands on a Ray cluster: the bytes of one process, whatever is killed, and no shard more than twice."""

import hashlib
import signal
import time
from collections import Counter

import pytest

from three_nodes import LONG, finish, start, three_nodes

#: Where processes find this as `sitecustomize`, each shard is noted when it is computed; there is time to be
#: killed before it is kept.
NOTING = """
import importlib.abc, importlib.machinery, os, sys, time

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "counterfoil.engine.cache":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            put = module.Cache._put

            def noted(cache, kind, keys, arrays):
                log = os.open(os.environ["SHARDS_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
                os.write(log, f"{cache.identity.key} {kind} {module.shard_name(keys)}\\n".encode())
                os.close(log)
                time.sleep(float(os.environ["SHARDS_PAUSE"]))
                put(cache, kind, keys, arrays)

            module.Cache._put = noted

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
RECIPE = """
title = "Captions, pictures and ratings of tiny models"
[[steps]]
do = "read"
n = 84
size = 32
[[steps]]
do = "caption"
by = "captioner:{blip}"
batch = 4
max_tokens = 6
temperature = 0.5
[[steps]]
do = "imagine"
by = "diffusers:{sd}"
steps = 1
size = 32
batch = 4
[[steps]]
do = "rate"
scorer = "hf:{clip}"
[[steps]]
do = "assemble"
"""


@pytest.fixture(scope="module")
def commands(tmp_path_factory):
    """Commands of models with random weights, but for where finished work and results go."""
    for library in ("torch", "transformers", "diffusers", "open_clip"):
        pytest.importorskip(library)
    import tiny_families
    import tiny_generative
    import tiny_pipelines

    place = tmp_path_factory.mktemp("models")
    tiny_pipelines.save_pipelines(place)
    tiny_families.save_clip(place / "dual")
    tiny_generative.save("blip", place / "blip")
    tiny_generative.save("idefics3", place / "vqa")
    recipe = place / "recipe.toml"
    recipe.write_text(RECIPE.format(blip=place / "blip", sd=place / "sd", clip=place / "dual"))
    measured = ["--quiet", "--draws", "100", "--workers", "0", "--device", "cpu"]
    return {
        "vqa": ["evaluate", f"vqa:{place / 'vqa'}", "world-quads", "--limit", "300", *measured],
        "encoder": ["evaluate", f"hf:{place / 'dual'}", "world-quads", "world-gallery", *measured],
        "build": ["build", str(recipe), "--workers", "0", "--quiet"],
    }


def begin(folder, command, executor):
    """A command as it is typed, its results and its cache in `folder`."""
    places = ("--out", folder / "out", "--cache", folder / "cache", "--executor", executor)
    # One thread here and there: what a model gives may depend on it in the last digit.
    return start("-m", "counterfoil", *command, *places, OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")


def noted(folder):
    """How often each shard was computed; lengths of captions, which the driver counts, are no shards."""
    log = folder / "shards"
    lines = log.read_text().splitlines() if log.exists() else []
    return Counter(line for line in lines if " limits " not in line)


def contents(folder):
    """A digest of each file, but for the manifests of runs, which have the time in them."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def shards(folder):
    return {name: found for name, found in contents(folder / "cache").items() if name.endswith(".npz")}


def in_the_middle(folder, shards, process):
    until = time.monotonic() + LONG
    while len(noted(folder)) < shards:
        assert time.monotonic() < until, "the run makes no progress"
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.parametrize("address", ["inside", "outside"])
@pytest.mark.parametrize("killed", ["a node", "the driver"])
@pytest.mark.parametrize("name", ["vqa", "encoder", "build"])
def test_a_command_on_a_cluster_that_loses_processes_gives_the_bytes_of_one_process(
    commands, tmp_path, name, killed, address
):
    alone, shared, hook = tmp_path / "alone", tmp_path / "shared", tmp_path / "hook"
    for folder in (alone, shared, hook):
        folder.mkdir()
    finish(begin(alone, commands[name], "local"))
    (hook / "sitecustomize.py").write_text(NOTING)
    noting = {"PYTHONPATH": str(hook), "SHARDS_LOG": str(shared / "shards"), "SHARDS_PAUSE": "0.5"}
    with three_nodes(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1", **noting) as cluster:
        executor = getattr(cluster, address)
        process = begin(shared, commands[name], executor)
        in_the_middle(shared, 2, process)
        if killed == "a node":
            cluster.kill()
        else:
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=LONG)
            process = begin(shared, commands[name], executor)
        finish(process)
    times = noted(shared)
    assert max(times.values()) <= 2
    # Killed were one worker, or three; each had computed one shard at most that it had not kept.
    assert sum(times.values()) - len(times) <= (1 if killed == "a node" else 3)
    assert contents(shared / "out") == contents(alone / "out")
    cache = shared / "cache"
    kept = [path.relative_to(cache / "v1").with_suffix("").parts for path in cache.rglob("*.npz")]
    assert {" ".join(parts) for parts in kept if "limits" not in parts} == set(times)
    if name == "build":
        # Captions and pictures, which a build of one process keeps beside itself alone.
        assert len({model for model, kind, _ in kept if kind == "made"}) == 2
    else:
        assert shards(shared) == shards(alone)
    assert not list((cache / "leases").glob("*.json"))
