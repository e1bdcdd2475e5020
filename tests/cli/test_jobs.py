"""`counterfoil work` and `counterfoil merge`: one command that ranks share."""

import json
from pathlib import Path

import pytest

from counterfoil.engine.executor import LOCAL
from counterfoil.engine.ray_executor import RayExecutor
from counterfoil.errors import StorageError

COMMAND = ("evaluate", "pixels:colours", "world-quads", "--limit", 40, "--out", "run", "--draws", 200)


@pytest.fixture
def job(counterfoil, tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    made = counterfoil("work", "job", "--of", 3, "--", *COMMAND)
    assert made.code == 0, made.err
    assert "0 of 3 ranks have ended" in made.out
    return tmp_path / "job"


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a run, but for the manifest, which has the time in it."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "manifest.json"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_what_ranks_share_is_merged_to_the_bytes_of_one_command(counterfoil, job, tmp_path, monkeypatch):
    for rank in (2, 0):
        ended = counterfoil("work", "job", "--rank", rank, "--of", 3)
        assert ended.code == 0, ended.err
        assert ended.out == ""
    assert not (tmp_path / "run").exists()
    status = counterfoil("work", "job")
    assert "2 of 3 ranks have ended" in status.out
    assert "to do: 1\n" in status.out
    early = counterfoil("merge", "job")
    assert early.code == 2
    assert "1 of 3 ranks have not ended; given: 1; " in early.err
    assert counterfoil("work", "job", "--rank", 1, "-q").err == ""
    # The variable of the environment names another cache: the job has its own, and computes nothing anew.
    shards = {path: path.stat().st_mtime_ns for path in (job / "cache").rglob("pairs/*.npz")}
    assert shards
    assert not (tmp_path / "cache").exists()
    # From another folder, the relative paths of the command are still those of its own.
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    merged = counterfoil("merge", job)
    assert merged.code == 0, merged.err
    assert set((job / "cache").rglob("pairs/*.npz")) == set(shards)
    monkeypatch.chdir(tmp_path)
    words = [str(word) for word in COMMAND]
    assert json.loads((tmp_path / "run/world-quads/manifest.json").read_text())["command"][1:] == words

    alone = counterfoil(*[word if word != "run" else "alone" for word in COMMAND])
    assert alone.out == merged.out
    assert contents(tmp_path / "alone") == contents(tmp_path / "run")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("work", "other"), "other: no such job; make it with 'counterfoil work FOLDER --of N -- COMMAND'"),
        (("work", "job", "--rank", 3), "rank:3/3: no such rank; given: 3; allowed: 0 to 2"),
        (("work", "job", "--rank", 0, "--of", 4), "another number of ranks; given: 4; allowed: 3"),
        (
            ("work", "job", "--of", 3, "--", "evaluate", "blind:length", "bivlc"),
            "the job is of another command",
        ),
        (("work", "new", "--", *COMMAND), "how many ranks share the job?; name their number: --of 64"),
        (("work", "new", "--of", 0, "--", *COMMAND), "number of ranks; given: 0; allowed: 1 or more"),
        (("work", "new", "--of", 2, "--", "demo"), "the work of this command cannot be shared"),
        (("work", "new", "--of", 2, "--", *COMMAND, "--no-cache"), "work that ranks share needs a cache"),
        (
            ("work", "new", "--of", 2, "--", *COMMAND, "--executor", "rank:0/2"),
            "jobs and estimates have executors",
        ),
        (("work", "new", "--of", 2, "--", "evaluate", "--seeed", 1), "no such option: --seeed"),
        (("merge", "new"), "new: no such job"),
    ],
)
def test_what_cannot_be_shared_is_one_line_and_writes_nothing(counterfoil, job, tmp_path, arguments, error):
    before = contents(tmp_path)
    refused = counterfoil(*arguments)
    assert refused.code == 2
    assert error in refused.err
    assert refused.err.count("\n") == 1
    assert contents(tmp_path) == before


def test_other_versions_of_libraries_are_refused_by_name(counterfoil, job):
    path = job / "job.json"
    content = json.loads(path.read_text())
    here, content["versions"]["numpy"] = content["versions"]["numpy"], "1.0"
    path.write_text(json.dumps(content))
    for command in (("work", "job", "--rank", 0), ("merge", "job")):
        refused = counterfoil(*command)
        assert refused.code == 2
        assert f"given: numpy {here} for 1.0; install the same versions everywhere" in refused.err


@pytest.mark.parametrize("content", ["{", "[]", '{"format": "counterfoil job", "command": [], "ranks": 2}'])
def test_a_damaged_job_is_one_line(counterfoil, job, content):
    (job / "job.json").write_text(content)
    refused = counterfoil("work", "job", "--rank", 0)
    assert refused.code == 2
    assert refused.err.startswith("counterfoil: job/job.json")
    assert refused.err.count("\n") == 1


@pytest.mark.parametrize("fails", [False, True])
def test_workers_of_a_cluster_go_when_the_command_ends(counterfoil, tmp_path, monkeypatch, fails):
    done: list[str] = []

    def run(self, work, advance):
        done.append("computed")
        if fails:
            raise StorageError("no worker of the Ray cluster has started")
        return LOCAL.run(work, advance)

    monkeypatch.setattr(RayExecutor, "run", run)
    monkeypatch.setattr(RayExecutor, "close", lambda self: done.append("closed"))
    asked = ("evaluate", "pixels:colours", "world-quads", "--limit", 5, "--draws", 100, "--executor", "ray")
    found = counterfoil(*asked, "--cache", tmp_path / "kept")
    assert (found.code != 0) is fails, found.err
    assert done == ["computed", "closed"]
