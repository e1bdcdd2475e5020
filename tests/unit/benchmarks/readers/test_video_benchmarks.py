"""Frames that are looked at; VATEX-EVAL from pickles; ActivityNet-FOIL, whose sentences have segments."""

import json
import pickle
import random

import numpy as np
import pytest

from counterfoil.benchmarks import videos
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.activitynet import OVERLAP, overlapping, read
from counterfoil.benchmarks.records import FileSource
from counterfoil.benchmarks.videos import ALL, FrameFeatures, FrameFolder, Sampling, Timeline, Video
from counterfoil.errors import DataError, InputError
from judged_rows import judged_rows
from refusals import refuses


def _pickled(folder, **changes):
    """Four captions of two videos; rater r gives caption c the rating 10 r + c."""
    values = {
        "candidates_list": np.array([f"caption  {i} " for i in range(4)]),
        "gts_list": np.array([[f"reference {i}.{k}" for k in range(10)] for i in range(4)]),
        "human_scores": np.array([[10.0 * rater + i for i in range(4)] for rater in range(3)]).reshape(-1),
        "video_ids": np.array([f"vid_{i // 2}" for i in range(4)], dtype=object),
        **changes,
    }
    folder.mkdir(exist_ok=True)
    for name, value in values.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(value))
    return folder


def test_ratings_and_references(tmp_path, read_free):
    benchmark = read_free("vatex-eval", _pickled(tmp_path / "v"))
    asked = benchmark.judged
    assert asked.ratings.tolist() == [[0, 10, 20], [1, 11, 21], [2, 12, 22], [3, 13, 23]]
    assert (asked.raters, asked.decimals) == ("apart", 4)
    assert judged_rows(benchmark) == [
        (name, name[:5], f"caption {i}", [f"reference {i}.{k}" for k in range(9)])
        for i, name in enumerate(("vid_0", "vid_0/2", "vid_1", "vid_1/2"))
    ]
    assert all(isinstance(v, Video) and v.sampling == Sampling(count=10) for v in benchmark.images)
    assert not benchmark.images_at_hand
    assert np.array_equal(benchmark.clusters, [0, 0, 1, 1])
    assert read_free("vatex-eval-1ref", tmp_path / "v").judged.references.counts.tolist() == [1] * 4


def test_lists_are_as_good_as_arrays(tmp_path, read_free):
    arrays = read_free("vatex-eval", _pickled(tmp_path / "a"))
    lists = _pickled(
        tmp_path / "b",
        candidates_list=[f"caption  {i} " for i in range(4)],
        gts_list=[[f"reference {i}.{k}" for k in range(10)] for i in range(4)],
        video_ids=[f"vid_{i // 2}" for i in range(4)],
        human_scores=[[10 * rater + i for i in range(4)] for rater in range(3)],
    )
    assert read_free("vatex-eval", lists).digest == arrays.digest


def test_features_beside_the_pickles_and_videos_elsewhere(tmp_path, read_free):
    folder = _pickled(tmp_path / "v")
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
    refuses(message, read_free, "vatex-eval", _pickled(tmp_path / "v", **changes))


class _Harmful:
    """Would write a file when it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return eval, (f"open({str(self.path)!r}, 'w')",)


def test_a_pickle_that_calls_something_is_refused(tmp_path, read_free):
    _pickled(tmp_path / "v", video_ids=["a", "b", "c", _Harmful(tmp_path / "harm")])
    with pytest.raises(DataError, match=r"video_ids\.pkl: a pickle of more than .*given: builtins.eval"):
        read_free("vatex-eval", tmp_path / "v")
    assert not (tmp_path / "harm").exists()


def _files():
    """v_b has two sentences, v_a one and a wrong paragraph in another order of the file."""
    right = {"v_b": ["a dog  runs", "it sits"], "v_a": ["a man"]}
    foil = {"v_a": ["a pan"], "v_b": ["a cat runs", "it sits"]}
    first = {"v_a": (19.0, ["a man"], [[0, 20.0]]), "v_b": (50.0, ["x", "y"], [[0, 9.9], [10.5, 40.0]])}
    second = {
        "v_a": (20.0, ["someone", "a guy"], [[30, 40], [50, 60]]),
        "v_b": (50.0, ["one", "two", "three"], [[0, 4], [5, 16], [11, 30]]),
    }
    paragraphs = [
        {"results": {video: [{"sentence": text} for text in texts] for video, texts in of.items()}}
        for of in (right, foil)
    ]
    keys = ("duration", "sentences", "timestamps")
    timed = [{v: dict(zip(keys, facts, strict=True)) for v, facts in of.items()} for of in (first, second)]
    names = ("final_right_video_sentences", "final_foil_video_sentences")
    names += ("anet_entities_test_1", "anet_entities_test_2")
    return dict(zip(names, [*paragraphs, *timed], strict=True))


def _write(folder, **changes):
    folder.mkdir(exist_ok=True)
    for name, value in {**_files(), **changes}.items():
        (folder / f"{name}.json").write_text(json.dumps(value))
    return folder


def _rows(benchmark):
    """(question, side, sentence, segment, start, end, references) of every row."""
    sides, shown = benchmark.judged.sides.tolist(), {image.id: image for image in benchmark.images}
    return [
        (name, side, text, image, shown[image].start, shown[image].end, references)
        for (name, image, text, references), side in zip(judged_rows(benchmark), sides, strict=True)
    ]


def test_sentences_segments_and_references(tmp_path, read_free):
    benchmark = read_free("activitynet-foil", _write(tmp_path / "a"))
    # [0, 9.9] is seconds 0 to 9: all five of "one", 5 of the 12 of "two" (more than 0.4), none of "three".
    # [10.5, 40] is 10 to 40: 7 of the 12 of "two", all of "three". Nothing overlaps [0, 20] in v_a: all do.
    assert _rows(benchmark) == [
        ("v_b", 0, "a dog runs", "v_b#0", 0.0, 9.9, ["one", "two"]),
        ("v_b", 0, "it sits", "v_b#1", 10.5, 40.0, ["two", "three"]),
        ("v_b", 1, "a cat runs", "v_b#0", 0.0, 9.9, ["one", "two"]),
        ("v_b", 1, "it sits", "v_b#1", 10.5, 40.0, ["two", "three"]),
        ("v_a", 0, "a man", "v_a#0", 0.0, 20.0, ["someone", "a guy"]),
        ("v_a", 1, "a pan", "v_a#0", 0.0, 20.0, ["someone", "a guy"]),
    ]
    asked = benchmark.judged
    assert (asked.label.tolist(), asked.votes.tolist()) == ([0, 0], [[1, 0], [1, 0]])
    # A paragraph's score is the mean over its sentences.
    assert asked.collect(np.array([1.0, 2.0, 4.0, 0.0, 5.0, 6.0])).tolist() == [[1.5, 2.0], [5.0, 6.0]]
    assert np.array_equal(benchmark.clusters, [0, 1])
    assert (benchmark.photos, benchmark.source) == (("v_b", "v_b", "v_a"), str(tmp_path / "a"))


def test_segments_of_features_are_cut_as_released(tmp_path, read_free):
    folder = _write(tmp_path / "a")
    (folder / "ActivityNet-FOIL_video_feats").mkdir()
    features = np.arange(14, dtype=np.float32)[:, None]
    np.save(folder / "ActivityNet-FOIL_video_feats" / "v_b.npy", features)
    first, second, other = read_free("activitynet-foil", folder).images
    for video, (start, end) in ((first, (0, 9.9)), (second, (10.5, 40.0))):
        assert isinstance(video.source, FrameFeatures)
        part = video.part_of(video.source.read())
        assert np.array_equal(part, features[int(start * 14 // 50.0) : int(end * 14 // 50.0)])
    assert other.source is None


def test_empty_segments_are_left_out_on_both_sides(tmp_path, read_free):
    times = _files()["anet_entities_test_1"]
    times["v_b"]["timestamps"] = [[9.9, 9.9], [10.5, 40.0]]
    benchmark = read_free("activitynet-foil", _write(tmp_path / "a", anet_entities_test_1=times))
    assert [row[:4] for row in _rows(benchmark)][:2] == [
        ("v_b", 0, "it sits", "v_b#1"),
        ("v_b", 1, "it sits", "v_b#1"),
    ]
    assert benchmark.source.endswith("(2 sentences whose segment is empty left out)")
    # Behind the end of the video, which the second file has at 20 s.
    times["v_a"]["timestamps"] = [[20.0, 25.0]]
    counted = card("activitynet-foil").model_copy(update={"size": 2})
    benchmark = read(counted, _write(tmp_path / "b", anet_entities_test_1=times), None)
    assert benchmark.judged.ids == ("v_b",)
    assert benchmark.source.endswith(
        "(4 sentences whose segment is empty left out; 1 videos whose segments are all empty left out)"
    )
    times["v_b"]["timestamps"] = [[9.0, 3.0], [50.0, 51.0]]
    with pytest.raises(DataError, match="no video is left"):
        read_free("activitynet-foil", _write(tmp_path / "c", anet_entities_test_1=times))


def test_overlaps_as_the_released_code_counts_them():
    rng = random.Random(3)
    for _ in range(300):
        draws = rng.randrange(2, 6)
        segment, *others = (tuple(sorted(rng.uniform(0, 30) for _ in range(2))) for _ in range(draws))
        seconds = set(range(int(segment[0]), int(segment[1]) + 1))
        expected = []
        for i, other in enumerate(others):
            own = range(int(other[0]), int(other[1]) + 1)
            if len(seconds & set(own)) / len(own) > OVERLAP:
                expected.append(i)
        assert overlapping(segment, others) == (expected or list(range(len(others))))
    # One that ends before it starts is no reference.
    assert overlapping((0.0, 3.0), [(9.0, 5.0), (1.0, 2.0)]) == [1]


def _without(name, video):
    value = _files()[name]
    del value.get("results", value)[video]
    return {name: value}


def _with(name, video, **facts):
    value = _files()[name]
    value[video] |= facts
    return {name: value}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (_without("final_foil_video_sentences", "v_a"), "1 videos have one paragraph and not the other"),
        (_without("anet_entities_test_1", "v_a"), r"test_1\.json: a video is not in the file; given: v_a"),
        (_without("anet_entities_test_2", "v_b"), r"test_2\.json: a video is not in the file; given: v_b"),
        (_with("anet_entities_test_1", "v_b", timestamps=[[0, 1]], sentences=["x"]), "more sentences than"),
        (_with("anet_entities_test_1", "v_b", timestamps=[[0, 1]]), "video 'v_b': not a time for every"),
        (_with("anet_entities_test_2", "v_b", duration=0), "'duration': .*given: 0; allowed: greater than 0"),
        (_with("anet_entities_test_2", "v_b", duration="x"), "video 'v_b', field 'duration': .*'x'"),
        (_with("anet_entities_test_2", "v_a", sentences=["x", ""]), r"'sentences\.1': .* at least 1"),
        ({"final_right_video_sentences": {"v": []}}, "no field 'results'"),
        ({"final_right_video_sentences": {"results": {"v": []}}}, r"'results\.v': list .* at least 1"),
        ({"final_right_video_sentences": {"results": {"v": [{"sentence": 4}]}}}, r"v\.0': .*given: 4; .*str"),
        ({"final_right_video_sentences": []}, "given: list of 0; allowed: an object"),
    ],
)
def test_files_that_do_not_fit(tmp_path, read_free, changes, message):
    refuses(message, read_free, "activitynet-foil", _write(tmp_path / "a", **changes))


def on_show(times, moment):
    """The last frame that is not after the moment."""
    return max(i for i, time in enumerate(times) if time <= moment + 1e-6)


def slowly(times, length, sampling, start, end):
    """What `chosen` says, frame by frame and moment by moment."""
    begin, stop = start or 0.0, min(length, length if end is None else end)
    if sampling.rate is not None:
        result, k = [], 0
        while not result or begin + k / sampling.rate < stop - 1e-6:
            result.append(on_show(times, begin + k / sampling.rate))
            k += 1
        return result
    part = [i for i, time in enumerate(times) if begin - 1e-6 <= time < stop - 1e-6]
    part = part or [on_show(times, begin)]
    if sampling.count is None:
        return part
    # linspace(0, F - 1, n): steps of (F - 1) / (n - 1); a single one is the first.
    between = max(1, sampling.count - 1)
    return [part[k * (len(part) - 1) // between] for k in range(sampling.count)]


@pytest.mark.parametrize("seed", range(12))
def test_the_frames_are_those_of_the_slow_twin(seed):
    rng = np.random.default_rng(seed)
    times = np.concatenate([[0.0], np.cumsum(rng.integers(1, 9, size=rng.integers(0, 60)))]) / 30
    line = Timeline(times, float(times[-1]) + 1 / 30)
    samplings = [ALL, *(Sampling(count=n) for n in (1, 2, 3, 10)), *(Sampling(rate=r) for r in (0.7, 3, 25))]
    for sampling in samplings:
        start = None if rng.random() < 0.3 else float(rng.random() * line.end * 0.9)
        end = None if rng.random() < 0.3 else (start or 0.0) + float(rng.random() * line.end + 1e-3)
        assert videos.chosen(line, sampling, start, end).tolist() == slowly(
            times, line.end, sampling, start, end
        )


def test_a_boundary_belongs_to_the_part_that_begins_there():
    line = Timeline.of_rate(100, 10.0)
    parts = [videos.chosen(line, ALL, k * 0.7, (k + 1) * 0.7) for k in range(14)]
    assert np.concatenate(parts).tolist() == list(range(98))


@pytest.mark.parametrize(
    ("start", "end", "said"),
    [(3.0, 3.0, "ends before it starts"), (3.0, 2.0, "ends before"), (-1.0, 2.0, "ends before it starts"),
     (10.0, None, "starts after the video's end"), (12.0, 20.0, "starts after")],
)  # fmt: skip
def test_what_is_no_part_is_named(start, end, said):
    for ask in (
        lambda: videos.chosen(Timeline.of_rate(100, 10.0), ALL, start, end, where="a.mp4"),
        lambda: videos.cut(50, 10.0, start, end, where="a.mp4"),
    ):
        refuses(f"^a.mp4: .*{said}", ask)


@pytest.mark.parametrize("seed", range(8))
def test_features_are_cut_as_the_official_code_cuts_them(seed):
    rng = np.random.default_rng(seed)
    frames, duration = int(rng.integers(1, 300)), float(rng.random() * 200 + 1)
    start, end = np.sort(rng.random(2)) * duration
    first, last = int(start * frames // duration), int(end * frames // duration)
    rows = list(range(frames))[first:last] or [first]
    assert list(range(*videos.cut(frames, duration, start, end))) == rows


@pytest.mark.parametrize(
    ("asked", "said"),
    [({"count": 0}, "given: 0; allowed: 1 to 10,000"), ({"rate": 0.0}, "above 0"),
     ({"rate": float("nan")}, "above 0"), ({"count": 3, "rate": 1.0}, "count 3 and rate 1.0")],
)  # fmt: skip
def test_a_sampling_that_takes_nothing_is_refused(asked, said):
    refuses(said, Sampling, **asked, error=InputError)


def test_videos_are_found_by_their_ids(tmp_path):
    folder = tmp_path / "frames"
    folder.mkdir()
    for name in ("a.webm", "a.npy", "b.AVI", "c.pt", "d.mp4", "d.mkv"):
        (tmp_path / name).touch()
    assert videos.find(tmp_path, ["a", "b", "c", "d", "d.mkv", "frames", "gone", "a"]) == {
        "a": FileSource(tmp_path / "a.webm"),
        "b": FileSource(tmp_path / "b.AVI"),
        "c": FrameFeatures(tmp_path / "c.pt"),
        "d": FileSource(tmp_path / "d.mp4"),
        "d.mkv": FileSource(tmp_path / "d.mkv"),
        "frames": FrameFolder(folder),
    }
    refuses("none of the 1 videos is in this folder", videos.find, tmp_path, ["gone"])
    refuses("no such folder of videos", videos.find, tmp_path / "none", ["a"])
