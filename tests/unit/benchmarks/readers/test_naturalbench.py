"""NaturalBench's questions and answers: its layout, and its official measures from what a model wrote."""

import io
import json
import re

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks.answers import Outcomes
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.engine.run import question_items
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.models.chat.protocols import Prompts, picked, turns
from refusals import refuses

ENDS = {
    "yes_no": "Please answer Yes or No.",
    "multiple_choice": "Please output the letter corresponding to the correct option.",
}


def png(number):
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (8, 6), (number % 256, 5 * number % 256, 90)).save(buffer, "PNG")
    return buffer.getvalue()


def rows(n):
    """Rows of the release, the official pattern of answers: question q is yes of image q."""
    found = []
    for index in range(n):
        kind, (yes, no) = (("yes_no", ("Yes", "No")), ("multiple_choice", ("A", "B")))[index % 2]
        row = {"Index": index, "Question_Type": kind, "Source": "DOCCI" if index % 3 else "Flickr"}
        for at, place in enumerate(("first", "second")):
            row[f"Image_{at}"] = {"bytes": png(2 * index + at), "path": None}
            row[f"Question_{at}"] = f"Is number {index} {place}?"
            for image in (0, 1):
                row[f"Image_{image}_Question_{at}"] = yes if image == at else no
        found.append(row)
    return found


@pytest.fixture
def release(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    pq.write_table(pa.Table.from_pylist(rows(30)), data / "train-00000-of-00001.parquet")
    return read(card("naturalbench-vqa").model_copy(update={"size": 120}), tmp_path, None)


def test_the_layout(release):
    assert len(release) == 120
    assert release.questions.ids[:5] == ("0_q0_i0", "0_q0_i1", "0_q1_i0", "0_q1_i1", "1_q0_i0")
    texts = [[release.captions[c].text for c in row] for row in release.questions.candidates]
    assert texts[1] == [
        "Is number 0 first?Please answer Yes or No. No",
        "Is number 0 first?Please answer Yes or No. Yes",
    ]
    assert texts[4][0] == f"Is number 1 first?{ENDS['multiple_choice']} A"
    assert [release.images[i].id for i in release.questions.query[:4]] == ["0_i0", "0_i1"] * 2
    assert set(release.questions.groupings["source"]) == {"DOCCI", "Flickr"}


def official(release, texts):
    """The official measures, written out row by row: first yes or no (A or B) in the text, -1 where none."""
    right = []
    for text, row in zip(texts, range(len(release)), strict=True):
        first, second = ("yes", "no") if release.questions.groupings["type"][row] == "yes_no" else ("A", "B")
        places = [re.search(rf"\b{word}\b", text, re.IGNORECASE) for word in (first, second)]
        starts = [len(text) if place is None else place.start() for place in places]
        answer = -1 if starts[0] == starts[1] else int(starts[0] < starts[1])
        right.append(answer == (1 if release.questions.ids[row][-4] == release.questions.ids[row][-1] else 0))
    cells = np.reshape(right, (-1, 2, 2))
    return {
        "accuracy": cells.mean(),
        "q_acc": cells.all(axis=2).mean(),
        "i_acc": cells.all(axis=1).mean(),
        "g_acc": cells.all(axis=(1, 2)).mean(),
    }


def test_official_measures_of_what_a_model_wrote(release):
    rng = np.random.default_rng(0)
    words = {
        "yes_no": ("Yes.", "no", "NO, yes would be wrong", "It is a yes", "I cannot tell", ""),
        "multiple_choice": ("A", "B.", "(B) not A", "It is a B", "neither", "option b"),
    }
    # Two of three answers are the right one, which stands first among the captions.
    right = [release.captions[c].text.rsplit(" ", 1)[1] for c in release.questions.candidates[:, 0]]
    texts = [
        words[kind][rng.integers(6)] if rng.random() < 1 / 3 else answer
        for kind, answer in zip(release.questions.groupings["type"], right, strict=True)
    ]
    items = question_items(release)
    asked = turns(items, Prompts.of("answer", where="test"), order="seeded", seed=0)
    assert asked[5].parts[1] == f"Is number 1 first?{ENDS['multiple_choice']}"
    found = [picked(item, [(turn, text)]) for item, turn, text in zip(items, asked, texts, strict=True)]
    outcomes = Outcomes({"accuracy": np.array([each.captions[0] == 0 for each in found])})
    result = evaluate(release, outcomes, scorer="model", draws=100)
    expected = official(release, texts)
    assert 0 < expected["g_acc"] < expected["q_acc"] < expected["accuracy"] < 1
    assert {name: result[name].value for name in expected} == pytest.approx(expected)
    assert not any(each.answered for each, text in zip(found, texts, strict=True) if text in ("", "neither"))
    # Groups of two and four questions are no groups of the report.
    assert set(result.groups) == {"yes_no", "multiple_choice", "DOCCI", "Flickr"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"Image_1_Question_0": "maybe"}, "row 3, column 'Image_1_Question_0': no answer; given: .?maybe"),
        ({"Image_1_Question_0": None}, "row 3, column 'Image_1_Question_0': no answer"),
        ({"Question_Type": "open"}, "row 3, column 'Question_Type'"),
    ],
)
def test_bad_rows(tmp_path, change, message):
    table = [{**row, "Image_0": f"{i}.png", "Image_1": f"{i}b.png"} for i, row in enumerate(rows(4))]
    table[2] |= change
    (tmp_path / "rows.json").write_text(json.dumps(table))
    refuses(message, read, card("naturalbench-vqa"), tmp_path / "rows.json", None)
