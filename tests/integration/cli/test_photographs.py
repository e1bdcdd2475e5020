"""The whole way on real photographs: SugarCrepe's questions on the COCO images at hand, real towers."""

import json

import pytest


@pytest.mark.parametrize("layers", [1, pytest.param(12, marks=pytest.mark.slow)])
def test_a_randomly_initialised_vit_b_32(counterfoil, shared_data, tmp_path, monkeypatch, layers):
    torch = pytest.importorskip("torch")
    open_clip = pytest.importorskip("open_clip")
    # The towers at their width and resolution; of their twelve equal layers one goes the same way in seconds.
    config = open_clip.get_model_config("ViT-B-32-quickgelu")
    towers = {tower: config[tower] | {"layers": layers} for tower in ("vision_cfg", "text_cfg")}
    monkeypatch.setitem(open_clip.factory._MODEL_CONFIGS, "ViT-B-32-quickgelu", config | towers)
    torch.manual_seed(0)
    model = open_clip.create_model("ViT-B-32-quickgelu")
    torch.save({"epoch": 1, "model_state_dict": model.state_dict()}, tmp_path / "last.pt")
    spec = f"open-clip:ViT-B-32-quickgelu/{tmp_path}/last.pt"
    photographs = shared_data / "coco_mini" / "images" / "val2017"
    data = ["--data", shared_data / "sugarcrepe", "--images", photographs]

    results = []
    for name, more in (("plain", "--workers 0"), ("other", "--no-cache --batch-size 7 --workers 1")):
        asked = f"evaluate {spec} sugarcrepe --available --device cpu -q --draws 1000 --json -"
        said = counterfoil.succeeds(asked, *data, more, f"--out {tmp_path}/runs/{name}")
        results.append(json.loads(said.out))
    accuracy = results[0]["measures"]["accuracy"]
    assert accuracy["n"] == 211
    # Random weights know nothing: chance lies within the interval.
    assert accuracy["low"] < 0.5 < accuracy["high"]
    # Another batch size and other workers change no decision.
    assert results[1]["measures"] == results[0]["measures"]
    assert results[1]["groups"] == results[0]["groups"]

    # All photographs and captions as a gallery.
    gallery = f"coco-captions --data {shared_data}/coco_mini"
    said = counterfoil.succeeds(f"evaluate {spec} {gallery} --device cpu --workers 0 -q --json -")
    captions = json.loads(said.out)
    assert [captions["measures"][f"{side}_recall_at_1"]["n"] for side in ("i2t", "t2i")] == [159, 795]
    estimate = captions["measures"]["mean_recall_at_10"]
    assert estimate["low"] < estimate["chance"] < estimate["high"]

    # The report carries the photographs.
    counterfoil.succeeds(f"compare {tmp_path}/runs/plain --html {tmp_path}/r.html --draws 100")
    assert (tmp_path / "r.html").read_text().count("data:image/") >= 40


def test_missing_photographs_are_counted(counterfoil, shared_data):
    photographs = shared_data / "coco_mini" / "images" / "val2017"
    data = ["--data", shared_data / "sugarcrepe", "--images", photographs]
    said = counterfoil.refused("evaluate", "pixels:colours", "sugarcrepe", *data, says="1513 of 1560")
    assert "--available" in said.err
