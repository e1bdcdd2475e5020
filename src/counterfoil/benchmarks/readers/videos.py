"""Videos with captions that people judged, as EMScore reads them: VATEX-EVAL and ActivityNet-FOIL.

VATEX-EVAL: captions of videos that three people each rated, as pickles.

    candidates_list.pkl   N captions
    gts_list.pkl          N lists of references, ten or so each
    human_scores.pkl      3 N ratings: all of the first rater, then the second's, then the third's
    video_ids.pkl         N names of videos
    VATEX-EVAL_video_feats/{name}.pt   (frames, width) features; or the videos in a folder of their own

vatex_train_en_annotations.json, beside them, is what EMScore takes the weights of its tokens from.

ActivityNet-FOIL: two paragraphs about a video, of which one has wrong words in it.

    final_right_video_sentences.json   {"results": {video: [{"sentence"}]}}: what people wrote
    final_foil_video_sentences.json    the same with wrong words
    anet_entities_test_1.json          {video: {"duration", "sentences", "timestamps"}}: when each sentence is
    anet_entities_test_2.json          the same by other people: the references
    ActivityNet-FOIL_video_feats/{video}.pt   (frames, width) features; or the videos in a folder of their own

train.json, beside them, is what EMScore takes the weights of its tokens from.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.decoding import Sampling
from counterfoil.benchmarks.forms import Preference
from counterfoil.benchmarks.readers.coco_files import json_file
from counterfoil.benchmarks.readers.human_ratings import (
    CaptionTable,
    RatingRows,
    Skipped,
    clean_caption,
    finished,
    placed,
    rated,
    unique_ids,
)
from counterfoil.benchmarks.readers.released_files import released_set
from counterfoil.benchmarks.references import References
from counterfoil.benchmarks.tables import shown
from counterfoil.benchmarks.videos import FrameFeatures, Video, find
from counterfoil.errors import DataError
from counterfoil.inputs.pickled import plain_pickle

FEATURES = "VATEX-EVAL_video_feats"
CORPUS = "vatex_train_en_annotations.json"

#: EMScore looks at so many frames of each video, evenly spread.
FRAMES = 10

_RATERS, _DECIMALS = 3, 4


def _vatex(card: Card, data: Path | None, images: Path | None, *, references: int) -> Benchmark:
    """18,000 captions of 3,000 videos with their first references.

    Correlations are taken with each of the three raters and averaged; scores are rounded to four decimals
    first. Videos are found in `images`, else their features in the folder of that name. Raises `DataError`
    for a pickle that is more than data, and naming file and row of what does not fit.
    """
    names = ("candidates_list.pkl", "gts_list.pkl", "human_scores.pkl", "video_ids.pkl")
    files = released_set(card, data, names)
    assert data is not None
    spoken_of, written, shown_of = (_listed(plain_pickle(files[at]), files[at]) for at in (0, 1, 3))
    n = len(spoken_of)
    for file, listed_rows in ((files[1], written), (files[3], shown_of)):
        if len(listed_rows) != n:
            raise DataError("not a row per candidate", where=file, given=len(listed_rows), allowed=str(n))
    ratings = _ratings(plain_pickle(files[2]), n, files[2])
    captions = CaptionTable()
    candidates, listed = [], []
    for row, cell in enumerate(spoken_of):
        where = f"{files[0]}, row {row + 1}"
        candidates.append(captions.add(clean_caption(cell, where), f"c{row}"))
        own = _listed(written[row], f"{files[1]}, row {row + 1}")
        if len(own) < references:
            raise DataError(
                "too few references",
                where=f"{files[1]}, row {row + 1}",
                given=len(own),
                allowed=f"{references} or more",
            )
        texts = [
            clean_caption(cell_of_row, f"{files[1]}, row {row + 1}", "reference")
            for cell_of_row in own[:references]
        ]
        listed.append(captions.add_all(texts, f"r{row}"))
    of_row = [
        clean_caption(cell_of_row, f"{files[3]}, row {row + 1}", "name of a video")
        for row, cell_of_row in enumerate(shown_of)
    ]
    videos, positions = placed(of_row)
    folder = images or (data / FEATURES if (data / FEATURES).is_dir() else None)
    sources = find(folder, videos) if folder is not None else {}
    return rated(
        card,
        RatingRows(
            unique_ids(of_row),
            np.array(candidates, dtype=np.int64),
            positions,
            ratings,
            References.of(listed),
        ),
        captions.items,
        [Video(name, sources.get(name), sampling=Sampling(count=FRAMES)) for name in videos],
        left=Skipped(),
        source=str(data),
        path=data,
        corpus=data / CORPUS,
        raters="apart",
        decimals=_DECIMALS,
    )


read_vatex = partial(_vatex, references=9)
read_vatex_one_reference = partial(_vatex, references=1)


def _listed(value: Any, where: object) -> Sequence[Any]:
    items = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(items, list | tuple) or not items:
        raise DataError(
            "not a list", where=where, given=shown(value), allowed="a list or an array, not empty"
        )
    return items


def _ratings(value: Any, n: int, where: Path) -> np.ndarray[Any, np.dtype[np.float64]]:
    """(n, 3): the file has one rater after the other."""
    try:
        numbers = np.asarray(value, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise DataError("a rating is no number", where=where, given=shown(value)) from None
    if len(numbers) != _RATERS * n:
        raise DataError(
            "not three ratings of every candidate", where=where, given=len(numbers), allowed=str(_RATERS * n)
        )
    broken = np.flatnonzero(~np.isfinite(numbers))
    if len(broken):
        raise DataError(
            "a rating is no finite number",
            where=f"{where}, rater {broken[0] // n + 1}, row {broken[0] % n + 1}",
            given=numbers[broken[0]],
        )
    return numbers.reshape(_RATERS, n).T.copy()


FOIL_FEATURES = "ActivityNet-FOIL_video_feats"
FOIL_CORPUS = "train.json"
RIGHT, FOIL = "final_right_video_sentences.json", "final_foil_video_sentences.json"
TIMES, REFERENCES = "anet_entities_test_1.json", "anet_entities_test_2.json"

#: A reference is one of a sentence's own where more than this share of its seconds are the sentence's.
OVERLAP = 0.4


@dataclass(frozen=True)
class _Entry:
    """One video of an annotation file."""

    duration: float
    sentences: list[str]
    times: list[tuple[float, float]]


@dataclass
class _Paragraphs:
    """A row per sentence: its paragraph, its caption, its segment, its references."""

    owners: list[int] = field(default_factory=list)
    sides: list[int] = field(default_factory=list)
    captions: list[int] = field(default_factory=list)
    segments: list[int] = field(default_factory=list)
    references: list[list[int]] = field(default_factory=list)


def read_activitynet(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """1,900 pairs of paragraphs, one per video; a paragraph's score is the mean over its sentences.

    The first candidate is the right one, and the label. Each sentence is asked about its own segment of the
    video, the k-th of anet_entities_test_1.json, with the references that overlap it (`overlapping`), else
    all of them. Sentences whose segment is empty are left out on both sides, and videos of which none is
    left, counted in the source. Videos are found in `images`, else their features in the folder of that name;
    questions are called by the video's id. Raises `DataError` naming file and video of what does not fit.
    """
    released_set(card, data, (RIGHT, FOIL, TIMES, REFERENCES))
    assert data is not None
    right, foil = (_paragraphs(data / name) for name in (RIGHT, FOIL))
    odd = sorted(set(right) ^ set(foil))
    if odd:
        raise DataError(
            f"{len(odd):,} videos have one paragraph and not the other",
            where=data / (FOIL if odd[0] in right else RIGHT),
            given=odd[0],
        )
    timed, written = (_object(data / name) for name in (TIMES, REFERENCES))
    captions, left, rows = CaptionTable(), Skipped(), _Paragraphs()
    ids: list[str] = []
    videos: list[Video] = []
    folder = images or (data / FOIL_FEATURES if (data / FOIL_FEATURES).is_dir() else None)
    sources = find(folder, right) if folder is not None else {}
    for name in right:
        times, others = (
            _of(name, entries, data / file) for entries, file in ((timed, TIMES), (written, REFERENCES))
        )
        # As released: where both files give a duration, the second one's counts.
        duration = others.duration
        source = sources.get(name)
        if isinstance(source, FrameFeatures):
            source = FrameFeatures(source.path, duration)
        sides = (right[name], foil[name])
        most = max(map(len, sides))
        if most > len(times.times):
            raise DataError(
                "more sentences than segments",
                where=f"{data / TIMES}, video '{name}'",
                given=f"{most} sentences",
                allowed=f"{len(times.times)}",
            )
        not_empty = {at for at, (start, end) in enumerate(times.times) if start < min(end, duration)}
        gone = [sum(at not in not_empty for at in range(len(side))) for side in sides]
        left.out("sentences whose segment is empty", sum(gone))
        if any(number == len(side) for number, side in zip(gone, sides, strict=True)):
            left.out("videos whose segments are all empty", 1)
            continue
        used = sorted(at for at in not_empty if at < most)
        segment = {at: len(videos) + number for number, at in enumerate(used)}
        videos += [
            Video(f"{name}#{at}", source, photo=name, start=times.times[at][0], end=times.times[at][1])
            for at in used
        ]
        references = captions.add_all(others.sentences, f"{name}_r")
        for side, sentences in enumerate(sides):
            for at, text in enumerate(sentences):
                if at in segment:
                    rows.owners.append(len(ids))
                    rows.sides.append(side)
                    rows.captions.append(captions.add(text, f"{name}_{'foil' if side else 'right'}#{at}"))
                    rows.segments.append(segment[at])
                    own = overlapping(times.times[at], others.times)
                    rows.references.append([references[position] for position in own])
        ids.append(name)
    if not ids:
        raise DataError("no video is left", where=left.said(str(data)))
    questions = Preference(
        tuple(ids),
        captions=np.array(rows.captions, dtype=np.int64),
        images=np.array(rows.segments, dtype=np.int64),
        owners=np.array(rows.owners, dtype=np.int64),
        sides=np.array(rows.sides, dtype=np.int64),
        votes=np.tile([1.0, 0.0], (len(ids), 1)),
        label=np.zeros(len(ids), dtype=np.int64),
        references=References.of(rows.references),
    )
    if card.size is not None:
        # The card counts what was released, not what is left of it.
        card = card.model_copy(update={"size": card.size - (len(right) - len(ids))})
    return finished(
        card,
        captions.items,
        videos,
        questions,
        source=left.said(str(data)),
        path=data,
        corpus=data / FOIL_CORPUS,
    )


def overlapping(segment: tuple[float, float], others: list[tuple[float, float]]) -> list[int]:
    """Which segments share more than `OVERLAP` of their own whole seconds with this one; all where none does.

    Seconds are counted as EMScore's code does, from the one in which a segment starts to the one in which it
    ends, both included.

    >>> overlapping((0.0, 10.9), [(2.5, 4.0), (8.0, 20.0), (10.0, 10.5)])
    [0, 2]
    >>> overlapping((0.0, 1.0), [(5.0, 9.0), (7.0, 9.0)])
    [0, 1]
    """
    first, last = int(segment[0]), int(segment[1])
    positions = []
    for at, (start, end) in enumerate(others):
        begin, stop = int(start), int(end)
        shared = min(last, stop) - max(first, begin) + 1
        if stop >= begin and max(shared, 0) / (stop - begin + 1) > OVERLAP:
            positions.append(at)
    return positions or list(range(len(others)))


def _paragraphs(path: Path) -> dict[str, list[str]]:
    value = _object(path)
    results = value.get("results")
    if not isinstance(results, dict) or not results:
        raise DataError("no 'results'", where=path, given=", ".join(value), allowed="{video: sentences}")
    sentences_of = {}
    for name, sentences in results.items():
        where = f"{path}, video '{name}'"
        if not isinstance(sentences, list) or not sentences:
            raise DataError("no sentences", where=where, given=shown(sentences))
        sentences_of[name] = [
            clean_caption(
                sentence.get("sentence") if isinstance(sentence, dict) else sentence,
                f"{where}, sentence {at + 1}",
                "sentence",
            )
            for at, sentence in enumerate(sentences)
        ]
    return sentences_of


def _of(name: str, entries: dict[str, Any], path: Path) -> _Entry:
    where = f"{path}, video '{name}'"
    entry = entries.get(name)
    if entry is None:
        raise DataError("a video is not in the file", where=path, given=name)
    try:
        duration = float(entry["duration"])
        times = [(float(start), float(end)) for start, end in entry["timestamps"]]
        sentences = entry["sentences"]
    except (KeyError, TypeError, ValueError):
        raise DataError(
            "not as released", where=where, given=shown(entry), allowed="duration, sentences, timestamps"
        ) from None
    if not (np.isfinite(duration) and duration > 0 and np.isfinite(times).all()):
        raise DataError("a duration or a time is no number of seconds", where=where, given=shown(entry))
    if not isinstance(sentences, list) or len(sentences) != len(times) or not sentences:
        raise DataError("not a time for every sentence", where=where, given=shown(entry))
    texts = [
        clean_caption(sentence, f"{where}, sentence {at + 1}", "sentence")
        for at, sentence in enumerate(sentences)
    ]
    return _Entry(duration, texts, times)


def _object(path: Path) -> dict[str, Any]:
    value = json_file(path)
    if not isinstance(value, dict):
        raise DataError("not an object by video", where=path, given=shown(value))
    return value
