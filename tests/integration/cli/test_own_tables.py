"""Tables of one's own where a name, a run or items are asked for: errors say the command that takes them."""

import pytest

from counterfoil.benchmarks.readers.own import kind_of
from counterfoil.studies.example_files import write_example_files


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables") / "first"
    write_example_files(folder)
    return folder


@pytest.fixture
def here(files, monkeypatch):
    monkeypatch.chdir(files)
    return files


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("pairs", "image caption negative_caption"),
        ("gallery", "image caption"),
        ("ratings", "image caption rating_1 rating_2"),
        ("preferences", "image caption_a caption_b preferred"),
        ("statements", "image statement label"),
    ],
)
def test_kinds_are_told_by_the_columns_of_their_layout(kind, columns):
    assert kind_of(columns.split()) == kind


def test_splits_may_share_ids(counterfoil, here):
    (here / "own.csv").write_text(
        "id,split,caption,negative_caption\n1,train,a cat,a dog\n1,test,two cats,two dogs\n2,test,c,d\n"
    )
    (here / "scores.csv").write_text(
        "split,id,positive_score,negative_score\ntest,1,0.1,0.2\ntest,2,0.2,0.1\ntrain,1,0.2,0.1\n"
    )
    done = counterfoil.succeeds("evaluate", "given:scores.csv", "pairs", "--data", "own.csv", "--draws", 100)
    assert "accuracy  66.67" in done.out


def test_ties_of_kept_scores_are_counted_anew(counterfoil, here):
    for name in ("blind:constant", "blind:random"):
        data = ("pairs", "--data", "pairs.csv", "--draws", 100)
        assert counterfoil("evaluate", name, *data, "--out", f"runs/{name[6:]}").code == 0
    strict = counterfoil("compare", "runs/constant", "runs/random", "--draws", 100)
    half = counterfoil("compare", "runs/constant", "runs/random", "--draws", 100, "--ties", "half")
    found = [
        {
            line.split()[0]: line.split()[1]
            for line in done.out.splitlines()
            if " [" in line and "−" not in line
        }
        for done in (strict, half)
    ]
    assert (found[0]["constant"], found[1]["constant"]) == ("0.00", "50.00")
    assert found[0]["random"] == found[1]["random"]


def test_a_table_is_read_as_the_kind_that_is_asked_for_and_by_any_metric(counterfoil, here):
    for asked in ("metric:length pairs", "blind:length gallery"):
        counterfoil.succeeds(f"evaluate {asked} --data quads.csv --draws 100")
