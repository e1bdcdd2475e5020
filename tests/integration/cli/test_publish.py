"""`benchmarks save` and `publish`: pictures and licences are kept, one commit, and who made what."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

import hub_server
from counterfoil import catalog
from counterfoil.benchmarks.folder import load, save

_DRIVER = """
import contextlib, io, json, os, sys, urllib.request
from counterfoil.cli import main
found = []
for step in json.load(sys.stdin):
    os.environ["HF_TOKEN"] = step.get("token", sys.argv[2])
    request = urllib.request.Request(sys.argv[1] + "/control", json.dumps(step.get("faults", {})).encode())
    urllib.request.urlopen(request, timeout=10).close()
    out, err = io.StringIO(), io.StringIO()
    sys.argv[1:], kept = ["benchmarks", "publish", *step["arguments"]], sys.argv[1:]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code or 0
    sys.argv[1:] = kept
    found.append([code, out.getvalue(), err.getvalue()])
print(json.dumps(found))
"""


def test_a_licence_that_forbids_it_is_kept(counterfoil, tmp_path):
    drawn = catalog.benchmark("world-quads").limited(4)
    card = catalog.benchmark_card("winoground").model_copy(update={"size": None})
    save(replace(drawn, card=card), tmp_path / "wg")
    to = ("--to", f"folder:{tmp_path / 'out'}")
    publish = (f"benchmarks publish {tmp_path}/wg", *to)
    counterfoil.fails(*publish, says="no licence to publish under; given: a research licence of its own")
    counterfoil.refused(
        *publish, "--licence CC-BY-4.0", says="the licence of Winoground does not let it be passed on"
    )
    assert not (tmp_path / "out").exists()
    said = counterfoil.succeeds(
        f"benchmarks publish {tmp_path}/wg", *to, "--licence CC-BY-4.0 --anyway --json -"
    )
    assert "published although the licence of Winoground" in json.loads(said.out)["notes"][0]
    assert "**Published although the licence of Winoground" in (tmp_path / "out" / "README.md").read_text()
    assert "of its source: a research licence" in load(tmp_path / "out").card.licence


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """The hub's folder and what each of several commands printed, run one after another in one process."""
    folder = tmp_path_factory.mktemp("hub")
    save(catalog.benchmark("world-quads").limited(6), folder / "quads")
    (folder / "repositories").mkdir()
    plain = [str(folder / "quads"), "--execute", "--to"]
    steps = {
        "unknown": {"arguments": [*plain, "hub:ann/quads"], "token": "hf_wrong"},
        "made": {"arguments": [*plain, "hub:ann/quads"]},
        "there": {"arguments": [*plain, "hub:ann/quads"]},
        "updated": {"arguments": [*plain, "hub:ann/quads", "--overwrite", "--split", "0.34"]},
        "cut": {"arguments": [*plain, "hub:ann/cut"], "faults": {"create": ["cut"]}},
        "again": {"arguments": [*plain, "hub:ann/again"], "faults": {"preupload": ["cut"]}},
        "halfway": {"arguments": [*plain, "hub:ann/half"], "faults": {"commit": ["403"]}},
    }
    local = [str(folder / "quads"), "--to", f"folder:{folder / 'local'}", "--split", "0.34"]
    with hub_server.running(folder / "repositories") as server:
        environment = {
            **os.environ, "HF_ENDPOINT": server.root, "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0",
            "HF_HOME": str(folder / "home"),
        }  # fmt: skip
        done = subprocess.run(
            [sys.executable, "-c", _DRIVER, server.root, hub_server.TOKEN],
            input=json.dumps([*steps.values(), {"arguments": local}]),
            env=environment, capture_output=True, text=True, timeout=240,
        )  # fmt: skip
    assert not done.returncode, done.stderr
    return folder, dict(zip(steps, json.loads(done.stdout), strict=False))


def committed(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_the_hub_gets_all_files_in_one_commit(hub):
    folder, said = hub
    for name in ("made", "updated", "again"):
        code, _, err = said[name]
        assert code == 0, err
        assert "/datasets/ann/" in err
        assert " at revision " in err
    there, local = committed(folder / "repositories" / "ann" / "quads"), committed(folder / "local")
    # What differs names the place: the address of the repository, and digests of such files.
    assert set(there) == set(local)
    named = {"README.md", "croissant.json", "checksums.sha256"}
    assert {path for path in there if there[path] != local[path]} == named
    assert load(folder / "repositories" / "ann" / "quads").digest == load(folder / "local").digest
    described = json.loads(there["croissant.json"])
    assert described["distribution"][0]["contentUrl"].startswith(
        "https://huggingface.co/datasets/ann/quads/resolve/main/data/"
    )


def test_errors_of_the_hub_are_one_line(hub):
    folder, said = hub
    for name, words in (
        ("unknown", "hub:ann/quads: the hub does not know the user; log in with 'hf auth login'"),
        ("there", "hub:ann/quads: the data set exists already; name another"),
        ("cut", "hub:ann/cut: the hub did not take the data set; given: "),
        ("halfway", "hub:ann/half: the token may not write there"),
    ):
        code, _, err = said[name]
        assert (code, len(err.splitlines())) == (2, 1), err
        assert words in err
    assert "the repository was made and is empty: go on with --overwrite" in said["halfway"][2]
    assert not committed(folder / "repositories" / "ann" / "half")
    assert "Traceback" not in "".join(err for _, _, err in said.values())


def test_a_build_brings_its_steps_and_who_made_what(counterfoil, tmp_path):
    small = ("--n", 14, "--set", "read.size=32", "--set", "imagine.size=32", "--no-cache", "--workers", 0)
    assert counterfoil("build", "bivlc", "--out", tmp_path / "built", *small, "--no-html").code == 0
    extra = tmp_path / "extra.json"
    extra.write_text('{"people": "three simulated people", "method": "Drawn."}')
    for which in ("built", "built/benchmark"):
        counterfoil.succeeds(
            f"benchmarks publish {tmp_path}/{which} --to folder:{tmp_path / 'out'} --licence MIT "
            f"--provenance {extra} --overwrite"
        )
        rows = pq.read_table(next((tmp_path / "out" / "data").iterdir())).to_pylist()
        last = pq.read_table(tmp_path / "built" / "steps" / "6-assemble" / "rows.parquet").to_pylist()
        makers = {each["id"]: each for each in last}
        assert rows
        for row in rows:
            for name in ("negative_image_by", "negative_image_from", "negative_image_seed"):
                assert row[name] is not None
                assert row[name] == makers[row["id"]][name]
        described = json.loads((tmp_path / "out" / "croissant.json").read_text())
        labels = [each["prov:label"].partition(":")[0] for each in described["prov:wasGeneratedBy"]]
        assert labels == ["read", "format", "imagine", "choose", "filter", "assemble"]
        readme = (tmp_path / "out" / "README.md").read_text()
        assert "Drawn." in readme
        assert "* three simulated people" in readme
        assert str(tmp_path) not in readme


def test_what_is_saved_is_measured_like_the_benchmark(counterfoil, shared_data, tmp_path):
    photographs = shared_data / "coco_mini" / "images" / "val2017"
    asked = ("sugarcrepe", "--data", shared_data / "sugarcrepe", "--images", photographs, "--available")
    said = counterfoil.succeeds("benchmarks save", *asked, "--limit", 20, "--out", tmp_path / "saved")
    assert "20 questions" in said.out
    assert "211 of 7,511 questions are at hand" in said.err
    found = [
        counterfoil("evaluate", "pixels:colours", *these, "--draws", 100, "--json", "-", "-q")
        for these in ((tmp_path / "saved",), (*asked, "--limit", 20))
    ]
    assert all(each.code == 0 for each in found), [each.err for each in found]
    one, other = (json.loads(each.out)["measures"]["accuracy"] for each in found)
    assert one == other
