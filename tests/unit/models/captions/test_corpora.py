"""Corpora in the layouts of VATEX, ActivityNet and COCO, and files that are none."""

import json

import pytest

from counterfoil.errors import DataError
from counterfoil.models.captions.corpora import documents
from refusals import refuses

#: Of talks in ActivityNet's layout too long sentences are left out; elsewhere they are cut off.
LONG = " ".join(["a"] * 67)


def read(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")
    return documents(path, where="metric:x, idf", allowed=["none"])


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (["a", LONG], [["a"], [LONG]]),
        ({"v": ["a", LONG], "w": ["b"], "empty": []}, [["a", LONG], ["b"]]),
        ({"v": {"duration": 3.0, "sentences": ["a", LONG, LONG[2:]]}}, [["a", LONG[2:]]]),
        (
            {"annotations": [{"image_id": i, "caption": text} for i, text in ((7, "a"), (1, "b"), (7, "c"))]},
            [["a", "c"], ["b"]],
        ),
    ],
)
def test_layouts(tmp_path, value, found):
    assert read(tmp_path / "corpus.json", value) == found


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": ["x", 7]}, "corpus.json, 'a': a caption is not a text; given: 7"),
        ({"a": "x"}, "corpus.json, 'a': not a list of captions; given: x"),
        ({"a": {"captions": []}}, "corpus.json, 'a': not a list of captions; given: {'captions': []}"),
        ({"annotations": [{"caption": "x"}]}, "corpus.json, annotation 1: not an annotation"),
        ({"annotations": [{"image_id": 1}]}, "annotation 1: a caption is not a text; given: None"),
        ([1, 2], "corpus.json, caption 1: a caption is not a text; given: 1"),
        ({}, "corpus.json: a corpus without captions"),
        ({"v": {"sentences": [LONG]}}, "corpus.json: a corpus without captions"),
        (7, "corpus.json: a corpus without captions"),
    ],
)
def test_files_that_are_no_corpus(tmp_path, value, said):
    assert said in refuses("", read, tmp_path / "corpus.json", value)


def test_no_file_and_half_a_file(tmp_path):
    file = tmp_path / "corpus.json"
    with pytest.raises(DataError, match=r"metric:x, idf: no such file; .*allowed: none, a JSON file of"):
        documents(file, where="metric:x, idf", allowed=["none"])
    file.write_text("{", encoding="utf-8")
    refuses(r"corpus\.json", documents, file, where="metric:x, idf", allowed=["none"])
