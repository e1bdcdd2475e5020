"""`benchmarks save` and `publish`: pictures and licences are kept, and who made what."""

import json
from dataclasses import replace

import pyarrow.parquet as pq

from counterfoil import catalog
from counterfoil.benchmarks.folder import load, save


def test_a_licence_that_forbids_it_is_kept(counterfoil, tmp_path):
    drawn = catalog.benchmark("world-quads").limited(4)
    card = catalog.benchmark_card("winoground").model_copy(update={"size": None})
    save(replace(drawn, card=card), tmp_path / "wg")
    to = ("--out", tmp_path / "out")
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


def test_a_build_brings_its_steps_and_who_made_what(counterfoil, tmp_path):
    small = ("--n", 14, "--set", "read.size=32", "--set", "imagine.size=32", "--no-cache", "--workers", 0)
    assert counterfoil("build", "bivlc", "--out", tmp_path / "built", *small, "--no-html").code == 0
    extra = tmp_path / "extra.json"
    extra.write_text('{"people": "three simulated people", "method": "Drawn."}')
    for which in ("built", "built/benchmark"):
        counterfoil.succeeds(
            f"benchmarks publish {tmp_path}/{which} --out {tmp_path / 'out'} --licence MIT "
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
