"""`counterfoil evaluate` on galleries: known numbers, and everything wrong with what is given."""

import json

import numpy as np
import pytest

JUDGED = """image,caption,relevance
a.jpg,a dog runs,1
a.jpg,a dog,0.5
b.jpg,a dog,1
b.jpg,a stick,1
c.jpg,a cat,1
"""


@pytest.fixture
def small(tmp_path):
    """A gallery of three images and four captions, and scores that put all right answers first."""
    (tmp_path / "judged.csv").write_text(JUDGED)
    np.save(tmp_path / "s.npy", np.array([[9, 5, 2, 1], [5, 8, 7, 0], [1, 2, 3, 9]], np.float32))
    return tmp_path


IMAGES, CAPTIONS = ["a.jpg", "b.jpg", "c.jpg"], ["c0", "c1", "c2", "c3"]


#: What takes the place of a sound input (scores, ids of captions, judgements, more of the command), and
#: what is said of it.
BAD = {
    "turned": ({"scores": lambda s: s.T}, ("4 x 3", "3 images", "transpose")),
    "shape": ({"scores": lambda s: np.pad(s, ((0, 0), (0, 1)))}, ("3 x 5", "3 images", "--ids")),
    "nan": ({"scores": lambda s: np.where(s == 7, np.nan, s)}, ("not a finite number", "b.jpg", "c2")),
    "ids": ({"ids": ["c0", "c1", "c2", "c9"]}, ("captions of gallery have no", "c3")),
    "doubled": ({"ids": ["c0", "c1", "c2", "c1"]}, ("twice", "c1")),
    "few ids": ({"ids": ["c0", "c1", "c2"]}, ("3 ids", "4")),
    "nothing right": ({"judged": "a.jpg,a dog,0"}, ("no row says what is right",)),
    "no relevance": ({"judged": "a.jpg,a dog,2"}, ("relevance",)),
    "pairs": ({"scorer": "s.csv"}, ("gallery", "similarity")),
    "measure": ({"more": "--measure recall_at_0"}, ("recall_at_0",)),
    "top": ({"more": "--first-stage blind:length"}, ("first-stage", "scorers of pairs")),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_one_line(counterfoil, small, case):
    change, says = BAD[case]
    np.save(small / "s.npy", change.get("scores", np.asarray)(np.load(small / "s.npy")))
    (small / "s.csv").write_text("id,s0,s1\n1,0.5,0.2\n2,0.7,0.1\n")
    more = change.get("more", "")
    if "ids" in change:
        np.savez(small / "ids.npz", image_ids=["a.jpg", "b.jpg", "c.jpg"], caption_ids=change["ids"])
        more = f"--ids {small}/ids.npz"
    if "judged" in change:
        (small / "judged.csv").write_text(f"image,caption,relevance\n{change['judged']}\n")
    scorer = f"given:{small}/{change.get('scorer', 's.npy')}"
    done = counterfoil.fails(f"evaluate {scorer} gallery --data {small}/judged.csv --out {small}/runs {more}")
    line = done.err.strip().splitlines()[-1]
    assert line.startswith("counterfoil: ")
    assert all(part in line for part in says)
    assert not (small / "runs").exists()


def _own(folder):
    """Arguments that measure a similarity of two images and three captions by a table of one's own."""
    (folder / "judged.csv").write_text("image,caption,relevance\na.jpg,x,1\na.jpg,y,0.5\nb.jpg,z,1\n")
    np.save(folder / "s.npy", np.eye(2, 3, dtype=np.float32))
    return [f"given:{folder}/s.npy", "gallery", "--data", folder / "judged.csv", "--draws", 100]


def test_of_several_benchmarks_each_takes_the_measures_it_has(counterfoil, shared_data, tmp_path):
    data = ["--data", shared_data / "coco_mini", "--draws", 100, "-q", "--json", "-"]
    both = ["evaluate", "blind:length", "coco-captions", "pmrp", *data]
    said = counterfoil.succeeds(*both, "--measure", "recall_at_1", "--measure", "pmrp")
    captions, pmrp = (list(result["measures"]) for result in json.loads(said.out))
    assert captions == ["i2t_recall_at_1", "t2i_recall_at_1", "mean_recall_at_1"]
    assert pmrp == ["i2t_pmrp", "t2i_pmrp", "mean_pmrp"]
    # A benchmark that is left without any, and a measure that none has, are mistakes.
    counterfoil.fails(*both, "--measure", "pmrp", says="coco-captions: unknown measure; given: pmrp")
    counterfoil.fails(
        *both, "--measure recall_at_1 --measure pmrp --measure group", says="unknown measure; given: group"
    )


def test_a_folder_without_a_benchmark_says_so(counterfoil, tmp_path):
    (tmp_path / "photos").mkdir()
    said = counterfoil.fails(
        f"evaluate blind:length {tmp_path}/photos", says=f"{tmp_path}/photos: no benchmark in this folder"
    )
    assert "--data" in said.err
    # No name is no folder, though a path of nothing is the folder one is in.
    assert "unknown benchmark; given: (empty)" in counterfoil("evaluate", "blind:length", "").err


def test_results_that_cannot_be_written_are_refused_before_the_work(counterfoil, tmp_path):
    own = _own(tmp_path)
    kept = (tmp_path / "judged.csv").read_bytes()
    for option, place, why in (
        ("--out", tmp_path / "judged.csv" / "runs", f"cannot be written: {tmp_path}/judged.csv is a file"),
        ("--json", tmp_path, "cannot be written: it is a folder; name a file in it"),
    ):
        said = counterfoil("evaluate", *own, option, place)
        assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
        # Of a folder of runs the run's own folder is named.
        assert f"counterfoil: {place}" in said.err
        assert why in said.err
    # A file where the run's own folder would be.
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "gallery").write_text("mine")
    counterfoil.fails("evaluate", *own, f"--out {tmp_path}/runs -q", says="runs/gallery: cannot be written")
    assert (tmp_path / "judged.csv").read_bytes() == kept
    assert (tmp_path / "runs" / "gallery").read_text() == "mine"
