"""What the browser of judged captions is given: places among all, who agrees, and what is carried along."""

import io
import json

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.videos import FrameFeatures, FrameFolder, Video
from counterfoil.report.forms import FORMS
from counterfoil.report.forms import rated as judged
from counterfoil.report.forms.rated import NEAR, distance, places, standing
from counterfoil.report.thumbnails import FRAMES, Thumbnails, strip, to_json

RATED, PREFERRED = FORMS["rated"], FORMS["preference"]


def test_places_are_those_counted_one_by_one():
    rng = np.random.default_rng(2)
    for n in (1, 2, 7, 40):
        scores, ratings = np.round(rng.normal(size=n), 1), rng.integers(1, 4, n).astype(float)
        expected = []
        # As the docstring says it, for each caption alone.
        for score, rating in zip(scores, ratings, strict=True):
            own = ((scores < score).sum() + (scores == score).sum() / 2) / n
            low, high = (ratings < rating).sum() / n, (ratings <= rating).sum() / n
            expected.append(own - low if own < low else own - high if own > high else 0.0)
        assert places(scores, ratings) == pytest.approx(expected)


def test_a_scorer_in_the_order_of_people_has_distance_zero(rated):
    oracle, _, against, constant = rated.runs
    assert not distance(oracle).any()
    assert set(RATED.kinds(oracle).tolist()) == {0}
    assert (RATED.kinds(against) > 0).mean() > 0.5
    # Who says nothing puts all in the middle: too low what people put high, too high what they put low.
    mean = np.nanmean(oracle.benchmark.judged.ratings, axis=1)
    away = distance(constant)
    assert (away[mean == mean.max()] < 0).all()
    assert (away[mean == mean.min()] > 0).all()


def test_the_data_hold_judgements_and_scores(rated):
    data = RATED.data(rated, Thumbnails(), pictures=True, captions=True)
    json.loads(to_json(data))
    questions = rated.runs[0].benchmark.judged
    assert data["ids"] == list(questions.ids)
    assert data["kinds"] == list(RATED.KINDS)
    assert data["pictured"] == len(questions)
    for q, row in enumerate(questions.ratings.tolist()):
        assert data["ratings"][q] == [None if np.isnan(value) else value for value in row]
        caption = rated.runs[0].benchmark.captions[questions.captions[q]]
        assert data["captions"][data["candidates"][q][0][0]] == [caption.text, caption.id]
        total, first = data["references"][q]
        assert total == q % 12
        assert len(first) == min(total, judged.MOST_REFERENCES)
    good = data["models"][1]
    values = rated.runs[1].answers.values
    assert good["scores"] == [[pytest.approx(value, rel=1e-5)] for value in values]
    assert good["standing"] == pytest.approx((100 * standing(values)).round(1).tolist())
    far = np.abs(np.array(good["away"])) > 100 * NEAR
    assert [kind != "0" for kind in good["kinds"]] == far.tolist()


def test_a_preference_of_several_draws_shows_their_mean(preferred):
    data = PREFERRED.data(preferred, Thumbnails(), pictures=False, captions=True)
    drawn = preferred.runs[2].answers.values
    assert drawn.ndim == 3
    assert data["models"][2]["scores"] == pytest.approx(drawn.mean(axis=2), rel=1e-5)
    questions = preferred.runs[0].benchmark.judged
    assert questions.references is data["references"] is None
    assert data["votes"] == questions.votes.tolist()
    assert data["label"] == questions.label.tolist()


def test_of_many_questions_a_part_is_carried_with_its_place_among_all(rated, monkeypatch):
    whole = RATED.data(rated, Thumbnails(), pictures=False, captions=True)
    monkeypatch.setattr(judged, "MOST_QUESTIONS", 9)
    part = RATED.data(rated, Thumbnails(), pictures=False, captions=True)
    assert (part["of"], len(part["ids"])) == (len(whole["ids"]), 9)
    assert set(part["groupings"][0]["codes"]) == {0, 1}
    for key in ("standing", "away"):
        by_id = dict(zip(whole["ids"], whole["models"][1][key], strict=True))
        assert part["models"][1][key] == [by_id[name] for name in part["ids"]]
    assert len(part["captions"]) < len(whole["captions"])


def test_a_video_is_a_strip_of_frames_and_features_are_none(tmp_path):
    for i in range(12):
        PIL.Image.new("RGB", (80, 60), (20 * i, 40, 90)).save(tmp_path / f"{i:02}.png")
    np.save(tmp_path / "features.npy", np.ones((4, 3), np.float32))
    video = Video("moving", FrameFolder(tmp_path, rate=2.0))
    with PIL.Image.open(io.BytesIO(strip(video))) as whole:
        # As wide as its frames, which differ from left to right.
        assert whole.width == FRAMES * 80 + 2 * (FRAMES - 1)
        reds = [whole.convert("RGB").getpixel((82 * i + 40, 30))[0] for i in range(FRAMES)]
    assert reds == sorted(set(reds))
    thumbnails = Thumbnails()
    features = Video("embedded", FrameFeatures(tmp_path / "features.npy"))
    assert list(thumbnails.add([video, features, Image("nothing")], [[0], [1], [2]])) == [0]
    assert not thumbnails.broken


def test_frames_that_cannot_be_read_are_named(tmp_path):
    (tmp_path / "0.png").write_bytes(b"no picture")
    thumbnails = Thumbnails()
    assert thumbnails.add([Video("cut off", FrameFolder(tmp_path))], [[0]]) == {0: 0}
    assert "0.png" in thumbnails.broken["cut off"]
