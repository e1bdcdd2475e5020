"""Cola's single objects and NaturalBench: their layouts, and measures against loops over released rows."""

import io
import json
import re

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts import forms
from counterfoil.benchmarks.answers import Outcomes
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import cola
from counterfoil.benchmarks.readers.specs import read
from counterfoil.engine.outcomes import question_items
from counterfoil.engine.session import Session, run
from counterfoil.evaluation.evaluate import chance, evaluate
from counterfoil.models.baselines import load_blind
from counterfoil.models.chat.protocols import Prompts, picked, turns
from refusals import refuses

LABELS = ["square white plate", "round red ball", "small brown dog", "tall green tree"]


def hard_rows(n=30, *, seed=0):
    """Rows of the layout. The last class is nowhere on a hard image; an image that shows a class is hard."""
    rng = np.random.default_rng(seed)
    found = []
    for at in range(n):
        present = (rng.random(4) < 0.3).astype(int)
        hard = np.maximum(present, rng.random(4) < 0.4).astype(int)
        hard[3] = 0 if present[3] else hard[3]
        found.append([f"vg/{at % 28}.jpg", {"1": "white"}, present.tolist(), hard.tolist()])
    return found


def written(path, whole):
    path.mkdir(exist_ok=True)
    (path / "COLA_singleobjects_benchmark_GQA.json").write_text(json.dumps(whole))
    return path


def precision_of(rows, scores):
    """The mean over classes of the average precision over its hard images, threshold by threshold."""
    of_class = []
    for label in range(len(LABELS)):
        chosen = [at for at, row in enumerate(rows) if row[3][label]]
        right = np.array([rows[at][2][label] for at in chosen])
        if not right.sum():
            continue
        line, value, before = scores[chosen, label], 0.0, 0
        for threshold in sorted(set(line.tolist()), reverse=True):
            taken = line >= threshold
            found = right[taken].sum()
            value += (found - before) / right.sum() * found / taken.sum()
            before = found
        of_class.append(value)
    return float(np.mean(of_class))


def of_items(benchmark, rows, scores):
    """The scores of a matrix of rows and classes, for the items of the benchmark: image with every class."""
    at = [(row, label) for label in range(3) for row in range(len(rows)) if rows[row][3][label]]
    found = np.full((len(benchmark.images), len(benchmark.captions)), 9.0)
    for item, (row, label) in enumerate(at):
        found[item, label] = scores[row, label]
    return found


def test_the_measure_is_the_mean_average_precision_over_hard_images(tmp_path):
    made = hard_rows()
    benchmark = cola.read_single(card("cola-single-gqa"), written(tmp_path, [LABELS, made]), None)
    assert [caption.text for caption in benchmark.captions] == LABELS[:3]
    assert "1 of 4 classes left out" in benchmark.source
    assert len(benchmark.images) == sum(row[3][label] for row in made for label in range(3))
    assert benchmark.images[0].id.startswith("square white plate/vg/")
    assert {image.photo for image in benchmark.images} <= {row[0] for row in made}
    rng = np.random.default_rng(1)
    for _ in range(5):
        scores = rng.permutation(len(made) * 4).reshape(len(made), 4).astype(float)
        answers = forms.answers_of(benchmark, of_items(benchmark, made, scores))
        result = evaluate(benchmark, answers, scorer="drawn", draws=50)
        assert result["t2i_average_precision"].value == pytest.approx(precision_of(made, scores), abs=1e-12)
    # A constant scorer: chance under half, between the worst order and the best.
    constant = forms.answers_of(benchmark, of_items(benchmark, made, np.zeros((len(made), 4))))
    of = {ties: evaluate(benchmark, constant, scorer="c", ties=ties, draws=50) for ties in ("strict", "half")}
    assert of["half"]["t2i_average_precision"].value == pytest.approx(
        chance(benchmark)["t2i_average_precision"], abs=1e-12
    )
    assert of["strict"]["t2i_average_precision"].value < of["half"]["t2i_average_precision"].value
    expected = []
    for label in range(3):
        marks = np.array([row[2][label] for row in made if row[3][label]])
        expected.append(np.mean([_precision(rng.permutation(marks)) for _ in range(1000)]))
    assert of["half"]["t2i_average_precision"].value == pytest.approx(np.mean(expected), abs=0.02)


def _precision(right):
    places = np.flatnonzero(right) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places))


def test_images_are_embedded_once_and_other_layouts_are_read(tmp_path):
    made = hard_rows(12)
    (tmp_path / "vg").mkdir()
    for at, row in enumerate(made):
        PIL.Image.new("RGB", (8, 8), (at * 20, 9, 9)).save(tmp_path / row[0])
    whole = {"labels": LABELS, "data": [[row[0], *row[2:]] for row in made]}
    named = cola.read_single(card("cola-single-gqa"), written(tmp_path, whole), tmp_path)
    assert named.digest == cola.read_single(
        card("cola-single-paco"), written(tmp_path, [LABELS, made]) / "COLA_singleobjects_benchmark_GQA.json",
        tmp_path,
    ).digest  # fmt: skip
    assert len(named.images) > 12
    found = run(named, load_blind("random"), session=Session(None))
    result = evaluate(named, found, scorer="random", draws=50)
    assert [name for name in result.measures if name.startswith("i2t")] == []
    assert 0 < result["t2i_average_precision"].value < 1


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
