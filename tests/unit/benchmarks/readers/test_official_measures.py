"""Official measures against loops over released rows: Cola, NaturalBench, statements (VSR), and sDCI."""

import base64
import io
import json
import re

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts import forms
from counterfoil.benchmarks.answers import Outcomes, Scores
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import cola
from counterfoil.benchmarks.readers.own import read_statements
from counterfoil.benchmarks.readers.specs import read
from counterfoil.benchmarks.records import PixelSource
from counterfoil.engine.outcomes import question_items
from counterfoil.engine.session import Session, run
from counterfoil.errors import DataError
from counterfoil.evaluation.evaluate import chance, evaluate
from counterfoil.metrics.agreement import fleiss_kappa
from counterfoil.metrics.ties import Ties
from counterfoil.models.baselines import load_blind
from counterfoil.models.chat.protocols import Prompts, picked, turns
from refusals import refuses

LABELS = ["square white plate", "round red ball", "small brown dog", "tall green tree"]


def hard_rows(n=30, *, seed=0):
    """Rows of the layout. The last class is nowhere on a hard image; an image that shows a class is hard."""
    rng = np.random.default_rng(seed)
    result = []
    for i in range(n):
        present = (rng.random(4) < 0.3).astype(int)
        hard = np.maximum(present, rng.random(4) < 0.4).astype(int)
        hard[3] = 0 if present[3] else hard[3]
        result.append([f"vg/{i % 28}.jpg", {"1": "white"}, present.tolist(), hard.tolist()])
    return result


def written(path, whole):
    path.mkdir(exist_ok=True)
    (path / "COLA_singleobjects_benchmark_GQA.json").write_text(json.dumps(whole))
    return path


def precision_of(rows, scores):
    """The mean over classes of the average precision over its hard images, threshold by threshold."""
    of_class = []
    for label in range(len(LABELS)):
        chosen = [i for i, row in enumerate(rows) if row[3][label]]
        right = np.array([rows[i][2][label] for i in chosen])
        if not right.sum():
            continue
        line, value, before = scores[chosen, label], 0.0, 0
        for threshold in sorted(set(line.tolist()), reverse=True):
            taken = line >= threshold
            result = right[taken].sum()
            value += (result - before) / right.sum() * result / taken.sum()
            before = result
        of_class.append(value)
    return float(np.mean(of_class))


def of_items(benchmark, rows, scores):
    """The scores of a matrix of rows and classes, for the items of the benchmark: image with every class."""
    at = [(row, label) for label in range(3) for row in range(len(rows)) if rows[row][3][label]]
    result = np.full((len(benchmark.images), len(benchmark.captions)), 9.0)
    for item, (row, label) in enumerate(at):
        result[item, label] = scores[row, label]
    return result


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
        result = evaluate(benchmark, answers, model="drawn", draws=50)
        assert result["t2i_average_precision"].value == pytest.approx(precision_of(made, scores), abs=1e-12)
    # A constant model: chance under half, between the worst order and the best.
    constant = forms.answers_of(benchmark, of_items(benchmark, made, np.zeros((len(made), 4))))
    of = {ties: evaluate(benchmark, constant, model="c", ties=ties, draws=50) for ties in ("strict", "half")}
    by_chance = chance(benchmark)["t2i_average_precision"]
    assert of["half"]["t2i_average_precision"].value == pytest.approx(by_chance, abs=1e-12)
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
    for i, row in enumerate(made):
        PIL.Image.new("RGB", (8, 8), (i * 20, 9, 9)).save(tmp_path / row[0])
    whole = {"labels": LABELS, "data": [[row[0], *row[2:]] for row in made]}
    named = cola.read_single(card("cola-single-gqa"), written(tmp_path, whole), tmp_path)
    assert named.digest == cola.read_single(
        card("cola-single-paco"), written(tmp_path, [LABELS, made]) / "COLA_singleobjects_benchmark_GQA.json",
        tmp_path,
    ).digest  # fmt: skip
    assert len(named.images) > 12
    actual = run(named, load_blind("random"), session=Session(None))
    result = evaluate(named, actual, model="random", draws=50)
    assert [name for name in result.measures if name.startswith("i2t")] == []
    assert 0 < result["t2i_average_precision"].value < 1


ENDS = {
    "yes_no": "Please answer Yes or No.",
    "multiple_choice": "Please output the letter corresponding to the correct option.",
}


def rows(n):
    """Rows of the release, the official pattern of answers: question q is yes of image q."""
    result = []
    for index in range(n):
        kind, (yes, no) = (("yes_no", ("Yes", "No")), ("multiple_choice", ("A", "B")))[index % 2]
        row = {"Index": index, "Question_Type": kind, "Source": "DOCCI" if index % 3 else "Flickr"}
        for i, place in enumerate(("first", "second")):
            pixels = np.full((6, 8, 3), (2 * index + i, 5 * index, 90), np.uint8)
            row[f"Image_{i}"] = {"bytes": PixelSource(pixels).read(), "path": None}
            row[f"Question_{i}"] = f"Is number {index} {place}?"
            for image in (0, 1):
                row[f"Image_{image}_Question_{i}"] = yes if image == i else no
        result.append(row)
    return result


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
    assert texts[1] == [f"Is number 0 first?{ENDS['yes_no']} {answer}" for answer in ("No", "Yes")]
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
    actual = [picked(item, [(turn, text)]) for item, turn, text in zip(items, asked, texts, strict=True)]
    outcomes = Outcomes({"accuracy": np.array([item.captions[0] == 0 for item in actual])})
    result = evaluate(release, outcomes, model="model", draws=100)
    expected = official(release, texts)
    assert 0 < expected["g_acc"] < expected["q_acc"] < expected["accuracy"] < 1
    assert {name: result[name].value for name in expected} == pytest.approx(expected)
    assert not any(item.answered for item, text in zip(actual, texts, strict=True) if text in ("", "neither"))
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


def vsr_row(number, **more):
    name = f"{number // 2:012}.jpg"
    return {
        "image": name,
        "image_link": f"http://images.cocodataset.org/train2017/{name}",
        "caption": f"The cat is {'under' if number % 3 else 'on'} the {number}.",
        "label": number % 2,
        "relation": "under" if number % 3 else "on",
        "vote_true_validator_id": "[1, 2]" if number % 2 else "[]",
        "vote_false_validator_id": "[3]" if number % 2 else "[1, 2, 3]",
        **more,
    }


@pytest.fixture
def vsr(tmp_path):
    def write(**splits):
        for split, rows in splits.items():
            (tmp_path / f"{split}.jsonl").write_text("\n".join(map(json.dumps, rows)))
        return tmp_path

    return write


SMALL = card("vsr-zeroshot").model_copy(update={"size": 6})


def test_the_dev_split_of_vsr_only_chooses_the_threshold(vsr, tmp_path):
    rows = [vsr_row(i) for i in range(10)]
    refuses(r"no test\.jsonl in this folder", read, SMALL, vsr(dev=rows[6:]), None)
    folder = vsr(test=rows[:6], dev=rows[6:])
    (tmp_path / "coco" / "train2017").mkdir(parents=True)
    (tmp_path / "coco" / "train2017" / rows[0]["image"]).touch()
    made = read(SMALL, folder, tmp_path / "coco")
    questions = made.statements
    assert questions.ids == (*(f"test/{i}" for i in range(6)), *(f"dev/{i}" for i in range(4)))
    assert questions.truth.tolist() == [False, True] * 5
    assert questions.measured.tolist() == [True] * 6 + [False] * 4
    assert questions.votes.tolist() == [[3, 0], [1, 2]] * 5
    assert [image.source is not None for image in made.images] == [True, False, False, False, False]
    # Rows 6 to 9 are those of dev.
    assert questions.groups()["on"].tolist() == [i % 3 == 0 for i in range(10)]
    # Scores of dev decide the threshold, and their truth counts nowhere.
    result = evaluate(made, Scores(np.array([0.1, 0.3] * 3 + [0.1, 0.9] * 2)), model="given")
    chosen_on = {"chosen_on": "4 questions of another split"}
    assert result.provenance["threshold"] == {**chosen_on, "low": 0.5, "high": 0.5}
    assert (result["auroc"].value, result["fitted_accuracy"].value) == (1, 0.5)
    assert {e.n for e in result.measures.values()} == {6}
    # A file alone is that split alone.
    alone = read(SMALL, folder / "test.jsonl", None)
    assert len(alone) == 6
    assert alone.statements.calibration is None


@pytest.mark.parametrize("cell", ["[1,", 3])
def test_cells_of_vsr_that_do_not_fit_are_named(vsr, cell):
    folder = vsr(test=[vsr_row(0), vsr_row(1, vote_true_validator_id=cell)])
    refuses(r"(?s)line 2.*not a list of validators", read, SMALL, folder, None)


def test_the_released_files_of_vsr(shared_data):
    folder = shared_data / "vsr" / "zeroshot"
    made = read(card("vsr-zeroshot"), folder, None)
    questions = made.statements
    assert (int(questions.measured.sum()), int((~questions.measured).sum())) == (1222, 340)
    assert int(questions.truth[questions.measured].sum()) == 629
    # Every relation of the release is in one of the authors' seven categories.
    relations, categories = questions.groupings["relation"], questions.groupings["category"]
    of = dict(zip(relations, categories, strict=True))
    assert (of["under"], of["next to"], of["touching"]) == ("Projective", "Unallocated", "Topological")
    assert sorted(set(categories)) == sorted(
        ["Adjacency", "Directional", "Orientation", "Projective", "Proximity", "Topological", "Unallocated"]
    )
    # The majority of the validators is the label.
    assert ((questions.votes[:, 1] > questions.votes[:, 0]) == questions.truth).all()
    assert fleiss_kappa(questions.votes[questions.measured]) == pytest.approx(pair_kappa(folder), abs=1e-12)
    # Always true is as good as the share of true statements, and balanced no better than chance.
    result = evaluate(
        made, Scores(0.9 + 0.01 * (np.arange(len(made)) % 2)), model="always true", ties=Ties.HALF, draws=20
    )
    assert result["accuracy"].value == pytest.approx(629 / 1222)
    assert result["balanced_accuracy"].value == 0.5


def pair_kappa(folder):
    """Fleiss' kappa from the validators themselves, pair by pair."""
    agreed, votes = [], []
    for line in (folder / "test.jsonl").read_text().splitlines():
        row = json.loads(line)
        said = [True] * len(json.loads(row["vote_true_validator_id"]))
        said += [False] * len(json.loads(row["vote_false_validator_id"]))
        pairs = [a == b for i, a in enumerate(said) for b in said[i + 1 :]]
        agreed.append(sum(pairs) / len(pairs))
        votes += said
    share = sum(votes) / len(votes)
    by_chance = share**2 + (1 - share) ** 2
    return (sum(agreed) / len(agreed) - by_chance) / (1 - by_chance)


def test_a_table_of_ones_own(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text(
        "image,text,label,dataset_source,split,votes_true,votes_false\n"
        "a.jpg,a cat,1,drawn,test,3,0\na.jpg,a dog,0,drawn,test,1,2\nb.jpg,a dog,true,coco,val,2,0\n"
        "b.jpg,a cat,false,coco,val,0,2\n"
    )
    made = read_statements(card("statements"), path, None)
    questions = made.statements
    assert questions.truth.tolist() == [True, False, True, False]
    assert questions.measured.tolist() == [True, True, False, False]
    assert questions.votes.tolist() == [[0, 3], [2, 1], [0, 2], [2, 0]]
    assert [caption.text for caption in made.captions] == ["a cat", "a dog"]
    assert set(questions.groups()) == {"drawn", "coco"}
    source, roles = questions.training_rows(where="mine")
    assert source.tolist() == [0, 2]
    assert [roles[role].tolist() for role in ("caption", "negative_caption")] == [[0, 1], [1, 0]]


def test_sentences_of_svo_probes_are_true_of_one_image_and_false_of_the_other(tmp_path):
    (tmp_path / "svo_probes.csv").write_text(
        "sentence,pos_image_id,neg_image_id,subj_neg,verb_neg,obj_neg\n"
        "A cat runs.,1,2,False,True,False\nA cat runs.,1,3,True,False,False\n"
        "A dog sits.,2,1,False,False,True\n"
    )
    made = read(card("svo-probes-statements"), tmp_path, None)
    questions = made.statements
    assert questions.ids == ("0/true", "0/false", "1/false", "2/true", "2/false")
    assert questions.truth.tolist() == [True, False, False, True, False]
    assert questions.groupings["type"] == ("", "verb", "subject", "", "object")
    # The official measure is the mean of the accuracies on positive and on negative images.
    result = evaluate(made, Scores(np.array([0.9, 0.8, 0.1, 0.2, 0.3])), model="one")
    assert result["balanced_accuracy"].value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert set(result.groups["verb"]) == {"accuracy", "fitted_accuracy"}


#: Left, top, right, bottom of the masks: one is too narrow, one at the edge.
BOXES = [(100, 50, 500, 450), (10, 10, 200, 400), (380, 260, 630, 500)]


def file(number, *, captions=6):
    """One file: an image of 640 x 512 with three masks, two of which are large enough."""
    mask = io.BytesIO()
    PIL.Image.new("1", (640, 512)).save(mask, "PNG")
    masks = {
        str(i): {
            "idx": i,
            "outer_mask": base64.b64encode(mask.getvalue()).decode(),
            "mask_quality": 0,
            "label": f"thing {i}",
            "caption": f"a thing {i} of {number}",
            "parent": -1,
            "requirements": [],
            "bounds": {"topLeft": {"x": a, "y": b}, "bottomRight": {"x": c, "y": d}},
            "area": 9,
        }
        for i, (a, b, c, d) in enumerate(BOXES)
    }
    keys = ["base", "m-0-sc", "m-2-sc"]
    return {
        "image": f"sa_{number}.jpg",
        "short_caption": "short",
        "extra_caption": "",
        "mask_data": masks,
        "mask_keys": list(masks),
        "summaries": {key: [f"{key} of {number}, text {k}" for k in range(captions)] for key in keys},
        "negatives": {
            key: {"swaps": [f"{key} {number} swap {k}" for k in (0, 1)], "basic": [f"{key} {number} basic"]}
            for key in keys
        },
        "clip_scores": {
            key: {"swaps_0": 0.1, "swaps_1": 0.3, "basic_0": 0.3 if number % 2 else 0.2} for key in keys
        },
    }


@pytest.fixture
def folder(tmp_path):
    """Six files of the test split; two are passed over, and one has too few captions for tests of five."""
    files = {f"f{number}.json": file(number, captions=4 if number == 2 else 6) for number in range(6)}
    files["f3.json"]["summaries"] = None
    del files["f4.json"]["mask_data"]["1"]["caption"]
    (tmp_path / "complete").mkdir()
    for name, whole in files.items():
        (tmp_path / "complete" / name).write_text(json.dumps(whole))
    (tmp_path / "splits.json").write_text(json.dumps({"train": ["x.json"], "test": list(files)}))
    return tmp_path


def similarity(image, text):
    """A number for any image and text."""
    return float(np.random.default_rng([len(image), *image.encode(), *text.encode()]).random())


def entries(numbers):
    return [(number, key) for number in numbers for key in ("base", "m-0-sc", "m-2-sc")]


def texts_of(entry, most):
    number, key = entry
    return [f"{key} of {number}, text {k}" for k in range(most)]


def matching(of, most):
    """The share of entries that are the largest of their row, batch by batch; a last one alone left out."""
    right = []
    for start in range(0, len(of), 8):
        batch = of[start : start + 8]
        for own, (number, key) in enumerate(batch):
            name = f"sa_{number}/{key}"
            row = [
                (min if i == own else max)(similarity(name, text) for text in texts_of(item, most))
                for i, item in enumerate(batch)
            ]
            if len(batch) > 1:
                right.append(int(np.argmax(row)) == own)
    return float(np.mean(right))


def against(of, most, wrong):
    right = []
    for number, key in of:
        name = f"sa_{number}/{key}"
        least = min(similarity(name, text) for text in texts_of((number, key), most))
        right.append(least > similarity(name, wrong[number, key]))
    return float(np.mean(right))


def accuracy(benchmark):
    captions, images = benchmark.questions.pairs()
    values = [
        similarity(benchmark.images[i].id, benchmark.captions[c].text or "")
        for c, i in zip(captions.ravel().tolist(), images.ravel().tolist(), strict=True)
    ]
    scores = Scores(benchmark.listed.collect(np.array(values)))
    return evaluate(benchmark, scores, model="drawn", draws=20)["accuracy"].value


def test_every_test_is_that_of_the_authors_loops(folder):
    every, five = entries((0, 1, 2, 5)), entries((0, 1, 5))
    swaps = {(number, key): f"{key} {number} swap 0" for number, key in every}
    hardest = {(n, key): f"{key} {n} basic" if n % 2 else f"{key} {n} swap 1" for n, key in every}
    result = read(card("sdci-scm"), folder, None)
    assert result.source.endswith("2 of 6 files left out")
    assert len(result) == 12
    assert accuracy(result) == pytest.approx(matching(every, 1))
    (group,) = {
        tuple(label for label in result.questions.groupings["kind"][start : start + 3]) for start in (0, 3, 6)
    }
    assert group == ("image", "region", "region")
    # Nine entries: the last alone has nothing to choose.
    few = read(card("sdci-scm-pick5"), folder, None)
    assert len(few) == 8
    assert accuracy(few) == pytest.approx(matching(five, 5))
    for name, of, most, wrong in (
        ("sdci-neg", every, 1, swaps),
        ("sdci-neg-pick5", five, 5, swaps),
        ("sdci-neg-hard", every, 1, hardest),
    ):
        benchmark = read(card(name), folder, None)
        assert len(benchmark) == len(of)
        assert accuracy(benchmark) == pytest.approx(against(of, most, wrong)), name
    whole = read(card("sdci-neg-base"), folder, None)
    assert [name.split("/")[1] for name in whole.questions.ids] == ["base"] * 4


def test_regions_are_cut_out_with_a_margin_within_the_image(folder):
    result = read(card("sdci-neg"), folder, None)
    assert [image.crop for image in result.images[:3]] == [None, (40, 0, 560, 510), (343, 224, 640, 512)]
    assert {image.photo for image in result.images[:3]} == {"sa_0.jpg"}
    (folder / "photos").mkdir()
    PIL.Image.new("RGB", (640, 512), "red").save(folder / "photos" / "sa_0.jpg")
    there = read(card("sdci-neg"), folder, None).available()
    assert [image.decode().size for image in there.images] == [(640, 512), (520, 510), (297, 288)]


def test_what_is_not_of_the_layout_is_one_line(folder):
    whole = file(0)
    whole["mask_data"]["0"]["outer_mask"] = "AAAA"
    (folder / "complete" / "f0.json").write_text(json.dumps(whole))
    refuses(r"outer_mask of sa_0\.jpg: a mask is no picture", read, card("sdci-neg"), folder, None)
    (folder / "complete" / "f1.json").unlink()
    refuses(r"f1\.json", read, card("sdci-neg-base"), folder, None)
    (folder / "splits.json").write_text(json.dumps({"test": ["f3.json"]}))
    with pytest.raises(DataError, match="1 of 1 files left out: no image or region with enough captions"):
        read(card("sdci-neg"), folder, None)
    (folder / "splits.json").write_text("[]")
    refuses("given: list of 0; allowed: an object", read, card("sdci-neg"), folder, None)
