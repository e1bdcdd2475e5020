"""Readers of true and false statements: VSR as released, and own tables."""

import json

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.benchmarks.readers.own import read_statements
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.metrics.agreement import fleiss_kappa
from counterfoil.metrics.ties import Ties
from refusals import refuses


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
    folder = vsr(test=rows[:6], dev=rows[6:])
    (tmp_path / "coco" / "train2017").mkdir(parents=True)
    (tmp_path / "coco" / "train2017" / rows[0]["image"]).touch()
    made = specs.read(SMALL, folder, tmp_path / "coco")
    questions = made.statements
    assert questions.ids == (*(f"test/{i}" for i in range(6)), *(f"dev/{i}" for i in range(4)))
    assert questions.truth.tolist() == [False, True] * 5
    assert questions.measured.tolist() == [True] * 6 + [False] * 4
    assert questions.votes.tolist() == [[3, 0], [1, 2]] * 5
    assert [image.source is not None for image in made.images] == [True, False, False, False, False]
    # Rows 6 to 9 are those of dev.
    assert questions.groups()["on"].tolist() == [i % 3 == 0 for i in range(10)]
    # Scores of dev decide the threshold, and their truth counts nowhere.
    scores = np.array([0.1, 0.3] * 3 + [0.1, 0.9] * 2)
    result = evaluate(made, Scores(scores), scorer="given")
    chosen_on = {"chosen_on": "4 questions of another split"}
    assert result.provenance["threshold"] == {**chosen_on, "low": 0.5, "high": 0.5}
    assert result["auroc"].value == 1
    assert result["fitted_accuracy"].value == 0.5
    assert {e.n for e in result.measures.values()} == {6}
    # A file alone is that split alone.
    alone = specs.read(SMALL, folder / "test.jsonl", None)
    assert len(alone) == 6
    assert alone.statements.calibration is None


@pytest.mark.parametrize("cell", ["[1,", 3])
def test_cells_of_vsr_that_do_not_fit_are_named(vsr, cell):
    folder = vsr(test=[vsr_row(0), vsr_row(1, vote_true_validator_id=cell)])
    refuses(r"(?s)line 2.*not a list of validators", specs.read, SMALL, folder, None)


def test_a_folder_without_test_is_an_error(vsr):
    folder = vsr(dev=[vsr_row(0), vsr_row(1)])
    refuses(r"no test\.jsonl in this folder", specs.read, SMALL, folder, None)


def test_the_released_files_of_vsr(shared_data):
    folder = shared_data / "vsr" / "zeroshot"
    made = specs.read(card("vsr-zeroshot"), folder, None)
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
        made, Scores(0.9 + 0.01 * (np.arange(len(made)) % 2)), scorer="always true", ties=Ties.HALF, draws=20
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
    made = specs.read(card("svo-probes-statements"), tmp_path, None)
    questions = made.statements
    assert questions.ids == ("0/true", "0/false", "1/false", "2/true", "2/false")
    assert questions.truth.tolist() == [True, False, False, True, False]
    assert questions.groupings["type"] == ("", "verb", "subject", "", "object")
    # The official measure is the mean of the accuracies on positive and on negative images.
    scores = Scores(np.array([0.9, 0.8, 0.1, 0.2, 0.3]))
    result = evaluate(made, scores, scorer="one")
    assert result["balanced_accuracy"].value == pytest.approx((1 / 2 + 2 / 3) / 2)
    assert set(result.groups["verb"]) == {"accuracy", "fitted_accuracy"}
