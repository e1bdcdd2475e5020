"""Quads of released rows: hub files, real files, EqBen's other forms, and cells that do not fit."""

import json

import numpy as np
import pytest

from benchmark_layouts import LAYOUTS, Released
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.catalog import benchmark
from refusals import refuses


@pytest.mark.parametrize(
    ("name", "captions", "images"),
    [
        ("colorswap", ("caption_1", "caption_2"), ("image_1", "image_2")),
        ("vismin", ("text_0", "text_1"), ("image_0", "image_1")),
    ],
)
def test_hub_layout(name, captions, images, tmp_path, jpeg, hub_parquet):
    columns = {"id": [7, 8], "category": ["object", "relation"]}
    columns |= {text: [f"{text} of {row}" for row in (0, 1)] for text in captions}
    # Both questions are about one photograph, which the rows do not say.
    columns |= {images[0]: [jpeg(1), jpeg(1)], images[1]: [jpeg(2), jpeg(3)]}
    hub_parquet(tmp_path / "data" / "test-00000-of-00001.parquet", columns)
    found = benchmark(name, data=tmp_path, counts=False)
    assert found.questions.ids == ("7", "8")
    assert [found.images[i].read() for i in found.paired.slots()[1][1]] == [jpeg(1), jpeg(3)]
    assert len(np.unique(found.clusters)) == 1


def test_cola_as_released(shared_data):
    found = benchmark("cola", data=shared_data / "cola")
    assert len(found) == 210
    assert found.images[0].id == "2390970.jpg"
    assert found.captions[0].text == "standing tall long giraffe to the right of brown giraffe"
    assert not found.images_at_hand


def test_files_are_found_by_the_end_of_their_paths(tmp_path):
    made = Released(tmp_path / "release")
    LAYOUTS["mmvp-vlm"](made)
    (tmp_path / "release" / "MLLM_VLM Images").rename(tmp_path / "pictures")
    found = benchmark("mmvp-vlm", data=made.folder, images=tmp_path / "pictures", counts=False)
    assert found.images_at_hand
    # In a folder without those of types they have their numbers alone.
    flat = tmp_path / "flat"
    flat.mkdir()
    (flat / "3.jpg").write_bytes((tmp_path / "pictures" / "Texts" / "3.jpg").read_bytes())
    found = benchmark("mmvp-vlm", data=made.folder, images=flat, counts=False)
    assert [image.id for image in found.images if image.source] == ["MLLM_VLM Images/Texts/3.jpg"]


class TestEqBen:
    @pytest.fixture
    def free(self):
        return card("eqben").model_copy(update={"size": None, "counts": {}})

    def test_annotation_of_one_source(self, tmp_path, free):
        def row(at):
            both = {f"image{k}": f"eqbenag/v/{at}_{k}.png" for k in (0, 1)}
            return both | {f"caption{k}": [f"first {at} {k}", f"second {at} {k}"] for k in (0, 1)}

        path = tmp_path / "ann_ag.json"
        path.write_text(json.dumps({"v": {"person": [row(0)], "door": [row(1), row(2)]}}))
        found = read(free, path, None)
        assert [caption.text for caption in found.captions[:3]] == ["first 0 0", "first 0 1", "first 1 0"]
        assert set(found.questions.groups()) == {"eqbenag", "Action Genome"}
        # A source by itself is held against its own count.
        refuses(r"in group 'eqbenag'; given: 3; allowed: 195,872", read, card("eqben"), path, None)

    def test_frames_are_turned_to_rgb_and_light_images_found(self, tmp_path, free):
        made = Released(tmp_path / "release")
        LAYOUTS["eqben"](made)
        folder = made.folder / "eqbenag" / "a"
        light = folder / "f1.jpg"
        (folder / "f1.png").rename(light)
        found = read(free, made.folder, None)
        frame = next(image for image in found.images if image.id == "eqbenyoucook2/b/1.npy")
        stored = np.load(made.folder / frame.id)
        np.testing.assert_array_equal(np.asarray(frame.decode()), stored[:, :, [2, 1, 0]])
        assert str(found.images[0].source) == str(light)
        np.save(made.folder / frame.id, stored.astype(float))
        refuses(r"1\.npy: not a frame; given: float64 \(16, 24, 3\); allowed", frame.decode)

    @pytest.mark.parametrize(
        ("name", "change", "message"),
        [
            ("private_info.json", lambda value: value[:-1], "the key does not fit the list of pairs"),
            ("private_random_idx.json", lambda value: [0, *value[1:]], "the key does not fit the list"),
            ("private_info.json", lambda value: [value[0] | {"name": "c2i0"}, *value[1:]], "of no pair"),
            ("private_info.json", lambda value: [value[0] | {"sample_cnt": 1}, *value[1:]], "two pairs of"),
        ],
    )
    def test_a_key_that_does_not_fit(self, name, change, message, tmp_path, free):
        made = Released(tmp_path / "release")
        LAYOUTS["eqben"](made)
        path = made.folder / "src_file" / name
        path.write_text(json.dumps(change(json.loads(path.read_text()))))
        refuses(message, read, free, made.folder, None)
        path.unlink()
        refuses(f"the blind form of EqBen lacks {name}", read, free, made.folder, None)
