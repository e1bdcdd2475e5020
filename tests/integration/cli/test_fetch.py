"""`counterfoil benchmarks fetch`, `save` and `publish`, and benchmarks from several places."""

import json
import shutil
from dataclasses import replace

import pyarrow.parquet as pq
import pytest

from counterfoil import catalog
from counterfoil.benchmarks.fetching import release
from counterfoil.benchmarks.folder import load, save
from released_files import Host, serving


@pytest.fixture
def released(shared_data):
    its = release("sugarcrepe")
    folder, revision = shared_data / "sugarcrepe", f"{its.repository}/{its.revision}"
    files = {f"{revision}/{file.path}": (folder / file.target).read_bytes() for file in its.files}
    with serving(Host(files)) as host:
        yield host


def test_what_is_fetched_is_found_by_name(counterfoil, released, tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_DATA", str(tmp_path / "sets"))
    says = "get it with 'counterfoil benchmarks fetch sugarcrepe'"
    counterfoil.fails("evaluate blind:length sugarcrepe", says=says)
    said = counterfoil.succeeds("benchmarks fetch", "sugarcrepe", "--mirror", released.address)
    assert "7 files fetched, 0 there already" in said.out
    assert "images are COCO val2017's" in said.err
    said = counterfoil.succeeds("evaluate", "blind:length", "sugarcrepe", "--draws", 100, "--json", "-", "-q")
    result = json.loads(said.out)
    assert result["measures"]["accuracy"]["n"] == 7511
    assert result["provenance"]["benchmark"]["path"] == str(tmp_path / "sets" / "sugarcrepe")
    said = counterfoil("benchmarks fetch")
    (line,) = (line for line in said.out.splitlines() if line.startswith("sugarcrepe "))
    assert line.split()[:2] == ["sugarcrepe", "yes"]


def test_a_folder_of_its_own_is_named_afterwards(counterfoil, released, tmp_path):
    more = ("--to", tmp_path / "here", "--mirror", released.address)
    said = counterfoil("benchmarks fetch", "sugarcrepe", *more)
    assert f"--data sugarcrepe={tmp_path / 'here' / 'sugarcrepe'}" in said.err


class TestBenchmarksFromSeveralPlaces:
    def test_a_path_for_each_and_one_for_the_others(self, counterfoil, shared_data, tmp_path):
        shutil.copytree(shared_data / "sugarcrepe", tmp_path / "mine", copy_function=shutil.copyfile)
        data = f"--data {shared_data} --data sugarcrepe={tmp_path / 'mine'}"
        asked = f"evaluate blind:constant sugarcrepe winoground {data} --draws 100"
        said = counterfoil.succeeds(f"{asked} --out {tmp_path}/run --json -")
        assert [item["benchmark"] for item in json.loads(said.out)] == ["sugarcrepe", "winoground"]
        files = [tmp_path / "run" / name / "manifest.json" for name in ("sugarcrepe", "winoground")]
        paths = [json.loads(file.read_text())["benchmark"]["path"] for file in files]
        assert paths == [str(tmp_path / "mine"), str((shared_data / "winoground").resolve())]

    def test_one_that_is_missing_is_said_before_anything_is_measured(self, counterfoil, shared_data):
        said = counterfoil.fails(
            f"evaluate blind:constant sugarcrepe bivlc --data sugarcrepe={shared_data / 'sugarcrepe'}",
            says="bivlc: no data of BiVLC",
        )
        assert "questions" not in said.out


def test_released_answers_beside_a_folder_called_like_the_benchmark(
    counterfoil, shared_data, tmp_path, monkeypatch
):
    (tmp_path / "bivlc").mkdir()
    shutil.copyfile(shared_data / "bivlc" / "ViT-B-32.csv", tmp_path / "bivlc" / "ViT-B-32.csv")
    monkeypatch.chdir(tmp_path)
    said = counterfoil.succeeds("evaluate", "given:bivlc/ViT-B-32.csv", "bivlc", "--draws", 100)
    assert "on BiVLC, 2,933 questions" in said.out


def test_another_selection_in_the_layout_of_a_benchmark(counterfoil, shared_data, tmp_path):
    shutil.copytree(shared_data / "sugarcrepe", tmp_path / "mine", copy_function=shutil.copyfile)
    items = json.loads((tmp_path / "mine" / "swap_att.json").read_text())
    (tmp_path / "mine" / "swap_att.json").write_text(json.dumps(dict(list(items.items())[:10])))
    asked = ("evaluate", "blind:constant", "sugarcrepe", "--data", tmp_path / "mine", "--draws", 100)
    said = counterfoil.fails(*asked, says="given: 10; allowed: 666")
    assert "--no-counts" in said.err
    said = counterfoil.succeeds(*asked, "--no-counts")
    assert "on SugarCrepe, another selection, 6,855 questions" in said.out


def test_a_quick_look_is_marked_wherever_its_numbers_go(counterfoil, shared_data, tmp_path):
    asked = ("sugarcrepe", "--data", shared_data / "sugarcrepe", "--limit", 40, "--draws", 100)
    for model in ("constant", "length"):
        said = counterfoil.succeeds(f"evaluate blind:{model}", *asked, f"--out {tmp_path}/{model} --json -")
    assert json.loads(said.out)["provenance"]["benchmark"]["limit"] == 40
    manifest = json.loads((tmp_path / "length" / "sugarcrepe" / "manifest.json").read_text())
    assert (manifest["benchmark"]["limit"], manifest["benchmark"]["questions"]) == (40, 40)
    said = counterfoil("compare", tmp_path / "constant", tmp_path / "length", "--draws", 100)
    assert "SugarCrepe (40 of its 7,511)" in said.out


def test_all_facts_of_every_benchmark_can_be_shown(counterfoil):
    from counterfoil.benchmarks.benchmark import BENCHMARKS

    for name in BENCHMARKS:
        assert counterfoil("list", "benchmarks", name).code == 0


def test_a_licence_that_forbids_it_is_kept(counterfoil, tmp_path):
    drawn = catalog.benchmark("world-quads").limited(4)
    card = catalog.benchmark_card("winoground").model_copy(update={"size": None})
    save(replace(drawn, card=card), tmp_path / "wg")
    to = ("--out", tmp_path / "out")
    publish = (f"benchmarks publish {tmp_path}/wg", *to)
    counterfoil.fails(*publish, says="no licence to publish under; given: a research licence of its own")
    says = "the licence of Winoground does not let it be passed on"
    counterfoil.refused(*publish, "--licence CC-BY-4.0", says=says)
    assert not (tmp_path / "out").exists()
    more = "--licence CC-BY-4.0 --anyway --json -"
    said = counterfoil.succeeds(f"benchmarks publish {tmp_path}/wg", *to, more)
    assert "published although the licence of Winoground" in json.loads(said.out)["notes"][0]
    assert "**Published although the licence of Winoground" in (tmp_path / "out" / "README.md").read_text()
    assert "of its source: a research licence" in load(tmp_path / "out").card.licence


def test_a_build_brings_its_steps_and_who_made_what(counterfoil, tmp_path):
    small = ("--n", 14, "--set", "read.size=32", "--set", "imagine.size=32", "--no-cache", "--workers", 0)
    assert counterfoil("build", "bivlc", "--out", tmp_path / "built", *small, "--no-html").code == 0
    extra = tmp_path / "extra.json"
    extra.write_text('{"people": "three simulated people", "method": "Drawn."}')
    for which in ("built", "built/benchmark"):
        more = f"--out {tmp_path / 'out'} --licence MIT --provenance {extra} --overwrite"
        counterfoil.succeeds(f"benchmarks publish {tmp_path}/{which} {more}")
        rows = pq.read_table(next((tmp_path / "out" / "data").iterdir())).to_pylist()
        last = pq.read_table(tmp_path / "built" / "steps" / "6-assemble" / "rows.parquet").to_pylist()
        makers = {item["id"]: item for item in last}
        assert rows
        for row in rows:
            for name in ("negative_image_by", "negative_image_from", "negative_image_seed"):
                assert row[name] is not None
                assert row[name] == makers[row["id"]][name]
        described = json.loads((tmp_path / "out" / "croissant.json").read_text())
        labels = [item["prov:label"].partition(":")[0] for item in described["prov:wasGeneratedBy"]]
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
    measure = ("--draws", 100, "--json", "-", "-q")
    whats = ((tmp_path / "saved",), (*asked, "--limit", 20))
    result = [counterfoil("evaluate", "pixels:colours", *what, *measure) for what in whats]
    assert all(item.code == 0 for item in result), [item.err for item in result]
    one, other = (json.loads(item.out)["measures"]["accuracy"] for item in result)
    assert one == other
