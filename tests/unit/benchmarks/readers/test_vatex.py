"""VATEX-EVAL from pickles, and which pickles are not read."""

import pickle

import numpy as np
import pytest

from counterfoil.benchmarks.records import FileSource
from counterfoil.benchmarks.video_frames import Sampling
from counterfoil.benchmarks.videos import FrameFeatures, Video
from counterfoil.errors import DataError
from judged_rows import judged_rows
from refusals import refuses


def _write(folder, **changes):
    """Four captions of two videos; rater r gives caption c the rating 10 r + c."""
    values = {
        "candidates_list": np.array([f"caption  {at} " for at in range(4)]),
        "gts_list": np.array([[f"reference {at}.{k}" for k in range(10)] for at in range(4)]),
        "human_scores": np.array([[10.0 * rater + at for at in range(4)] for rater in range(3)]).reshape(-1),
        "video_ids": np.array([f"vid_{at // 2}" for at in range(4)], dtype=object),
        **changes,
    }
    folder.mkdir(exist_ok=True)
    for name, value in values.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(value))
    return folder


def test_ratings_and_references(tmp_path, read_free):
    benchmark = read_free("vatex-eval", _write(tmp_path / "v"))
    asked = benchmark.judged
    assert asked.ratings.tolist() == [[0, 10, 20], [1, 11, 21], [2, 12, 22], [3, 13, 23]]
    assert (asked.raters, asked.decimals) == ("apart", 4)
    assert judged_rows(benchmark) == [
        (name, name[:5], f"caption {at}", [f"reference {at}.{k}" for k in range(9)])
        for at, name in enumerate(("vid_0", "vid_0/2", "vid_1", "vid_1/2"))
    ]
    assert all(isinstance(v, Video) and v.sampling == Sampling(count=10) for v in benchmark.images)
    assert not benchmark.images_at_hand
    assert np.array_equal(benchmark.clusters, [0, 0, 1, 1])
    one = read_free("vatex-eval-1ref", tmp_path / "v").judged
    assert one.references.counts.tolist() == [1] * 4


def test_lists_are_as_good_as_arrays(tmp_path, read_free):
    arrays = read_free("vatex-eval", _write(tmp_path / "a"))
    lists = _write(
        tmp_path / "b",
        candidates_list=[f"caption  {at} " for at in range(4)],
        gts_list=[[f"reference {at}.{k}" for k in range(10)] for at in range(4)],
        video_ids=[f"vid_{at // 2}" for at in range(4)],
        human_scores=[[10 * rater + at for at in range(4)] for rater in range(3)],
    )
    assert read_free("vatex-eval", lists).digest == arrays.digest


def test_features_beside_the_pickles_and_videos_elsewhere(tmp_path, read_free):
    folder = _write(tmp_path / "v")
    (folder / "VATEX-EVAL_video_feats").mkdir()
    (folder / "VATEX-EVAL_video_feats" / "vid_1.pt").write_bytes(b"")
    first, second = (image.source for image in read_free("vatex-eval", folder).images)
    assert first is None
    assert isinstance(second, FrameFeatures)
    assert second.path == folder / "VATEX-EVAL_video_feats" / "vid_1.pt"
    (tmp_path / "films").mkdir()
    (tmp_path / "films" / "vid_0.mp4").write_bytes(b"")
    first, second = (image.source for image in read_free("vatex-eval", folder, tmp_path / "films").images)
    assert isinstance(first, FileSource)
    assert second is None
    (tmp_path / "empty").mkdir()
    refuses("none of the 2 videos is in this folder", read_free, "vatex-eval", folder, tmp_path / "empty")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"candidates_list": ["a", " ", "b", "c"]}, "row 2, column 'candidates_list': empty text"),
        ({"candidates_list": "abcd"}, "candidates_list.pkl: not a list"),
        ({"candidates_list": ["a"]}, "gts_list.pkl: not a row per candidate; given: 4; allowed: 1"),
        ({"gts_list": [["r"] * 9, ["r"] * 8, ["r"] * 9, ["r"] * 9]}, "row 2: too few references; given: 8"),
        ({"human_scores": np.zeros(11)}, "not three ratings of every candidate; given: 11; allowed: 12"),
        ({"human_scores": [["x"] * 12]}, "human_scores.pkl: a rating is no number"),
        ({"human_scores": np.array([0.0] * 6 + [np.nan] + [0.0] * 5)}, "row 3, .*_2': a rating is missing"),
        ({"video_ids": ["a", "b", None, "d"]}, "row 3, column 'video_ids': not a text"),
    ],
)
def test_pickles_that_do_not_fit(tmp_path, read_free, changes, message):
    refuses(message, read_free, "vatex-eval", _write(tmp_path / "v", **changes))


class _Harmful:
    """Would write a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return eval, (f"open({str(self.path)!r}, 'w')",)


def test_a_pickle_that_calls_something_is_refused(tmp_path, read_free):
    _write(tmp_path / "v", video_ids=["a", "b", "c", _Harmful(tmp_path / "harm")])
    with pytest.raises(DataError, match=r"video_ids\.pkl: a pickle of more than .*given: builtins.eval"):
        read_free("vatex-eval", tmp_path / "v")
    assert not (tmp_path / "harm").exists()
