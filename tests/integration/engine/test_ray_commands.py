"""Commands on a Ray cluster: the bytes of one process, whatever is killed."""

import hashlib
import signal
import time

import pytest

from three_nodes import LONG, finish, start, three_nodes

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
model = "hf:{clip}"
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


def contents(folder):
    """A digest of each file, but for the manifests of runs, which have the time in them."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def shards(folder):
    return {name: result for name, result in contents(folder / "cache").items() if name.endswith(".npz")}


def in_the_middle(folder, shards_kept, process):
    until = time.monotonic() + LONG
    while len(list(folder.rglob("*.npz"))) < shards_kept:
        assert time.monotonic() < until, "the run makes no progress"
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    assert process.poll() is None


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "killed", "address"),
    [
        ("vqa", "a node", "inside"),
        ("encoder", "the driver", "outside"),
        ("build", "a node", "outside"),
        ("build", "the driver", "inside"),
    ],
)
def test_a_command_on_a_cluster_that_loses_processes_gives_the_bytes_of_one_process(
    commands, tmp_path, name, killed, address
):
    alone, shared = tmp_path / "alone", tmp_path / "shared"
    for folder in (alone, shared):
        folder.mkdir()
    finish(begin(alone, commands[name], "local"))
    with three_nodes(OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1") as cluster:
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
    assert contents(shared / "out") == contents(alone / "out")
    if name == "build":
        # Captions and pictures, which a build of one process keeps beside itself alone.
        assert len({path.parts[-3] for path in (shared / "cache").rglob("made/*.npz")}) == 2
    else:
        assert shards(shared) == shards(alone)
    assert not list((shared / "cache" / "leases").glob("*.json"))
