"""`counterfoil evaluate` on galleries: measures of several benchmarks, and results that cannot be written."""

import json

import numpy as np


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


def test_a_file_where_the_folder_of_a_run_would_be(counterfoil, tmp_path):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "gallery").write_text("mine")
    own = _own(tmp_path)
    counterfoil.fails("evaluate", *own, f"--out {tmp_path}/runs -q", says="runs/gallery: cannot be written")
    assert (tmp_path / "runs" / "gallery").read_text() == "mine"
