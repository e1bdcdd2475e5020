"""Captions in one form: each change, its counts, what stays, and a twin in plain Python on real captions."""

import json
import re

import pyarrow as pa
import pytest

from counterfoil.build import StepContext
from counterfoil.build.steps.format import Format, uniform
from counterfoil.errors import CounterfoilError
from refusals import refuses


def plainly(text):
    """A caption as the step makes it with its defaults, for captions without typographic marks."""
    text = re.sub(r" ([.,;:!?])(?=\s|$)", r"\1", " ".join(text.split()))
    text = re.sub(r",([A-Za-z])", r", \1", text)
    words = [word for word in re.split(r"[^A-Za-z]+", text) if word]
    title = len(text.split()) > 3 and all(word == word.capitalize() for word in words)
    if (len(text.split()) > 2 and text.isupper()) or title:
        text = text.lower()
    text = text[:1].upper() + text[1:]
    return text if re.search(r"[.!?][\"')\]]*$", text) else text.rstrip(" ,;:-") + "."


def test_real_captions_are_those_of_a_plain_loop(shared_data):
    files = sorted((shared_data / "sugarcrepe").glob("*.json"))
    captions = [row["caption"] for file in files for row in json.loads(file.read_text()).values()]
    made, counts = uniform(pa.array(captions))
    assert made.to_pylist() == [plainly(caption) for caption in captions]
    assert counts["final stop"] > 1000
    again, none = uniform(made)
    assert again == made
    assert set(none.values()) == {0}


@pytest.mark.parametrize(
    ("given", "made"),
    [
        (" a  dog , “wet”…", 'A dog, "wet"...'),
        ("two\u00a0dogs,cats", "Two dogs, cats."),
        ("The Quick Brown Fox", "The quick brown fox."),
        ("A man at Big Ben", "A man at Big Ben."),
        ("Is it?", "Is it?"),
        ('He reads "stop."', 'He reads "stop."'),
        ("a dog -", "A dog."),
        ("", ""),
        (None, None),
        ("A TV", "A TV."),
    ],
)
def test_a_caption(given, made):
    assert uniform(pa.array([given], pa.string()))[0].to_pylist() == [made]


def test_originals_and_counts_are_kept_and_bad_input_refused(tmp_path):
    rows = pa.table(
        {"id": ["a", "b"], "caption": ["a dog", "A cat."], "negative_caption": ["a cat", "A dog"]}
    )
    once = Format().run(rows, StepContext(tmp_path))
    assert once.kept["caption"].to_pylist() == ["A dog.", "A cat."]
    assert once.kept["caption_original"].to_pylist() == ["a dog", "A cat."]
    assert once.facts["changed"]["negative_caption"]["final stop"] == 2
    assert Format().run(once.kept, StepContext(tmp_path)).kept == once.kept
    with pytest.raises(CounterfoilError, match="no column to format"):
        Format(columns=("title",)).run(pa.table({"id": ["a"], "caption": ["x"]}), StepContext(tmp_path))
    with pytest.raises(CounterfoilError, match="captions are no text"):
        Format().run(pa.table({"id": ["a"], "caption": [1]}), StepContext(tmp_path))
    refuses("columns: number of values", Format, columns=(), error=CounterfoilError)
