"""`counterfoil evaluate` on galleries: measures of several benchmarks, and results that cannot be written."""

import json


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
    (tmp_path / "mine.csv").write_text("caption,negative_caption\na cat,a dog\n")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "pairs").write_text("mine")
    counterfoil.fails(
        f"evaluate blind:length pairs --data {tmp_path}/mine.csv --out {tmp_path}/runs",
        says="runs/pairs: cannot be written",
    )
    assert (tmp_path / "runs" / "pairs").read_text() == "mine"
