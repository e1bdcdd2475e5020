"""Every code block of README and the guides runs as it is printed, and prints what is shown."""

import glob
import subprocess

import pytest

from made_once import made_once
from warm_shell import WarmShell

from . import stage
from .blocks import PAGES, agrees, blocks, commands

#: Commands that other tests run, or that take what a test cannot give, by their first words: where or why.
ELSEWHERE = {
    ("make",): "sets up an environment of its own; the commands behind it run in tests",
    ("pip",): "installs",
    ("git",): "a clone",
    (".venv/bin/python",): "the tests themselves",
    ("counterfoil", "benchmarks", "fetch"): "the network: tests/integration/cli/test_fetch.py",
    ("counterfoil", "annotate", "serve"): "a server: tests/integration/annotate/server/test_serve.py",
    ("python", "-m", "build"): "a wheel: tests/integration/annotate/server/test_wheel.py",
    **{
        (word,): "containers: tests/integration/test_deployment.py"
        for word in ("cd", "printf", "docker", "umask")
    },
    ("torchrun",): "two processes: tests/integration/cli/test_train.py",
    **{
        (*["counterfoil", "annotate", "prolific"], word, "pairs/"): "a server: test_annotate.py"
        for word in ("status", "approve", "reject")
    },
    ("counterfoil", "demo"): "minutes: tests/unit/studies and tests/integration/cli/test_usage.py",
}
#: Benchmarks from the hub, or from what was fetched, to the local data that stand for them.
NOT_HERE = {name: f"data/{name}" for name in ("bivlc", "winoground", "sugarcrepe")}
#: Those over COCO's test half are over a fifth of it.
PARTS = dict.fromkeys(("coco-5k", "coco-1k", "cxc", "eccv"), "data/eccv")
#: What other programs read, and where that is tested.
_SERVER = "tests/integration/annotate/server"
OTHERS = {"nginx": f"{_SERVER}/test_behind_nginx.py", "caddyfile": "tests/integration/test_deployment.py"}
LANGUAGES = {"sh", "console", "python", "toml", *OTHERS}

#: What commands whose output no page shows are given besides, so that they do the same with less: whole
#: benchmarks are measured by the commands whose output is shown, in integration/cli and in unit/world.
SMALLER = {
    "evaluate": {"--draws": "100"},
    "audit": {"--limit": "400"},
    "compare": {"--draws": "100"},
    "pool bias": {"--draws": "100"},
    "train": {"--steps": "2", "--batch-size": "40"},
    "train mix": {},
    "explain": {"--limit": "1"},
    "world build": {"--n": "28"},
}
#: Galleries are measured whole: other commands compare and rank their runs.
GALLERIES = {"coco-5k", "coco-1k", "cxc", "eccv", "pmrp", "world-gallery"}


def warm_shell(folder):
    places = {"COUNTERFOIL_CACHE": str(folder / ".cache"), "COUNTERFOIL_DATA": str(folder / "data")}
    return WarmShell(folder, small_worlds=True, OMP_NUM_THREADS="1", **places)


def begun(folder, shared):
    stage.build(folder, shared)
    shell = warm_shell(folder)
    for name in stage.RUNS:
        words = f"counterfoil evaluate embeddings:{name}.npz coco-5k eccv --data data/eccv --out runs/{name}"
        done = shell.run([*words.split(), "--no-counts", "--draws", "100"])
        assert done.code == 0, done.err
    shell.close()


@pytest.fixture(scope="module")
def shell(tmp_path_factory, shared_data):
    pytest.importorskip("transformers")
    made = made_once(tmp_path_factory, "stage", lambda folder: begun(folder, shared_data))
    folder = tmp_path_factory.mktemp("docs") / "stage"
    # With its links: thousands of names stand for few pictures.
    subprocess.run(["cp", "-a", made, folder], check=True)
    shell = warm_shell(folder)
    yield shell
    shell.close()


def expanded(pattern, command, folder):
    """The files and folders of a pattern; of runs those of the stage and of the page, and no other page's."""
    if "*" not in pattern or "=" in pattern:
        return []
    result = sorted(glob.glob(pattern, root_dir=folder))
    if not pattern.startswith("runs/"):
        return result
    every = blocks(command.where.partition(":")[0])
    shells = [block for block in every if block.language in ("sh", "console")]
    words = [word for block in shells for c in commands(block) for word in c.words]
    runs = {*stage.RUNS, *(word.split("/")[1] for word in words if word.startswith("runs/"))}
    return [name for name in result if name.split("/")[1] in runs]


def prepared(command, folder):
    """The words of a command with stand-ins for weights, and its patterns expanded as a shell would."""
    words = []
    for word in command.words:
        word = stage.STAND_INS.get(word, word)
        words += expanded(word, command, folder) or [word]
    named = [words[k + 1] for k, word in enumerate(words) if word == "--data"]
    if "--guard" in words:
        guard = words.index("--guard") + 1
        words[guard] = f"{words[guard]}={NOT_HERE[words[guard]]}"
    if words[1] in ("evaluate", "explain") and all("=" in value for value in named):
        known = {value.partition("=")[0] for value in named}
        places = PARTS if words[2].startswith("given:") else NOT_HERE | PARTS
        unnamed = [name for name in places if name in words and name not in known]
        words += [part for name in unnamed for part in ("--data", f"{name}={places[name]}")]
    if not PARTS.keys().isdisjoint(words):
        words += ["--no-counts"]
    return words if command.printed is not None else smaller(words)


def smaller(words):
    options = dict(SMALLER.get(" ".join(words[1:3]), SMALLER.get(words[1], {})))
    precomputed = words[2].startswith(("given:", "embeddings:"))
    if words[1] == "evaluate" and GALLERIES.isdisjoint(words) and not precomputed:
        options["--limit"] = "60"
    kept = list(words)
    for name, value in options.items():
        if name in kept:
            kept[kept.index(name) + 1] = value
        else:
            kept += [name, value]
    return kept


@pytest.mark.parametrize("page", PAGES)
def test_a_page_runs_as_it_is_printed(page, shell):
    for block in blocks(page):
        assert block.language in LANGUAGES, f"{block.where}: name the language of the block, or indent it"
        if block.language in OTHERS:
            continue
        if block.language == "toml":
            (shell.folder / block.text.splitlines()[0].removeprefix("# ")).write_text(local(block.text))
        elif block.language == "python":
            done = shell.run(local(block.text))
            assert done.code == 0, f"{block.where}\n{done.err}"
        else:
            for command in commands(block):
                run_command(command, shell)


def local(text):
    """A text with stand-ins for weights that are on a hub."""
    for name, stands_in in stage.STAND_INS.items():
        text = text.replace(name, stands_in)
    return text


def run_command(command, shell):
    # "…" stands for options that the page shows elsewhere.
    if "…" in command.words or any(command.words[: len(first)] == first for first in ELSEWHERE):
        return
    # Buckets: test_cache_places.py and test_images_at_a_distance.py of tests/integration.
    if any(word.startswith("s3://") for word in command.words):
        return
    assert command.words[0] == "counterfoil", f"{command.where}: nothing runs this"
    words = prepared(command, shell.folder)
    # Pages repeat commands; where neither shows what is printed, once is enough.
    if command.printed is None and tuple(words) in shell.done:
        return
    done = shell.run(words)
    assert done.code == 0, f"{command.where}\n{done.err}"
    shell.done.add(tuple(words))
    if command.words[1] == "pool" and command.words[2] != "bias":
        stage.judge_pool(shell.folder)
    if command.printed is not None:
        assert agrees(command.printed, done.out), f"{command.where} prints\n{done.out}"
