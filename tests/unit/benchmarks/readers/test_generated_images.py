"""Readers of human ratings of generated images: GenAI-Bench and its ranking set."""

import json

import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read


def write(folder, name, value):
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps(value))


def entry(prompt, **models):
    return {"prompt": prompt, "models": models}


def test_ratings_of_an_image_are_averaged_and_tags_are_groups(tmp_path):
    prompts = {
        "00000": entry("a  cat", DALLE_3=[5, 4, 3], SDXL_Base=[1, 1, 2]),
        "00001": entry("two dogs", DALLE_3=[2, 2, 2]),
    }
    write(tmp_path, "genai_image.json", prompts)
    write(tmp_path, "genai_skills.json", {"basic": [0], "counting": ["00001"], "none": []})
    (tmp_path / "DALLE_3").mkdir()
    (tmp_path / "DALLE_3" / "00001.jpeg").touch()
    made = read(card("genai-bench"), tmp_path, None)
    questions = made.rated
    assert questions.ids == ("DALLE_3/00000", "SDXL_Base/00000", "DALLE_3/00001")
    assert questions.ratings[:, 0] == pytest.approx([4, 4 / 3, 2])
    assert [caption.text for caption in made.captions] == ["a cat", "two dogs"]
    assert [image.source is not None for image in made.images] == [False, False, True]
    assert {label: mask.tolist() for label, mask in questions.groups().items()} == {
        "DALLE_3": [True, False, True],
        "SDXL_Base": [False, True, False],
        "basic": [True, True, False],
        "counting": [False, False, True],
    }


def test_nine_images_of_each_prompt(tmp_path):
    write(
        tmp_path,
        "human_rating.json",
        [{"id": 7, **entry("a cat", DALLE_3={"1": [5, 4], "2": [1, 2]}, SD={"1": [3]})}],
    )
    made = read(card("genai-bench-ranking"), tmp_path, None)
    assert [image.id for image in made.images] == [
        "DALLE_3/00007_01.jpeg",
        "DALLE_3/00007_02.jpeg",
        "SD/00007_01.jpeg",
    ]
    assert made.rated.ratings[:, 0].tolist() == [4.5, 1.5, 3]
