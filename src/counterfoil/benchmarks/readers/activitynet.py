"""ActivityNet-FOIL: two paragraphs about a video, of which one has wrong words in it, as EMScore reads them.

    final_right_video_sentences.json   {"results": {video: [{"sentence"}]}}: what people wrote
    final_foil_video_sentences.json    the same with wrong words
    anet_entities_test_1.json          {video: {"duration", "sentences", "timestamps"}}: when each sentence is
    anet_entities_test_2.json          the same by other people: the references
    ActivityNet-FOIL_video_feats/{video}.pt   (frames, width) features; or the videos in a folder of their own

train.json, beside them, is what EMScore takes the weights of its tokens from.
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Preference
from counterfoil.benchmarks.readers.questions import (
    CaptionTable,
    check_counts,
    clean_caption,
    left_out,
    noted,
    numbered,
)
from counterfoil.benchmarks.readers.released_files import released_set
from counterfoil.benchmarks.records import Caption
from counterfoil.benchmarks.references import References
from counterfoil.benchmarks.tables import shown
from counterfoil.benchmarks.videos import FrameFeatures, Video, find
from counterfoil.errors import DataError
from counterfoil.inputs.files import parse_json, read_text

FEATURES = "ActivityNet-FOIL_video_feats"
CORPUS = "train.json"
RIGHT, FOIL = "final_right_video_sentences.json", "final_foil_video_sentences.json"
TIMES, REFERENCES = "anet_entities_test_1.json", "anet_entities_test_2.json"

#: A reference is one of a sentence's own where more than this share of its seconds are the sentence's.
OVERLAP = 0.4


class _Entry(NamedTuple):
    """One video of an annotation file."""

    duration: float
    sentences: list[str]
    times: list[tuple[float, float]]


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """1,900 pairs of paragraphs, one per video; a paragraph's score is the mean over its sentences.

    The first candidate is the right one, and the label. Each sentence is asked about its own segment of the
    video, the k-th of anet_entities_test_1.json, with the references that overlap it. Sentences whose segment
    is empty are left out on both sides, and videos of which none is left.
    """
    released_set(card, data, (RIGHT, FOIL, TIMES, REFERENCES))
    assert data is not None
    right, foil = (_paragraphs(data / name) for name in (RIGHT, FOIL))
    odd = sorted(set(right) ^ set(foil))
    if odd:
        what = f"{len(odd):,} videos have one paragraph and not the other"
        raise DataError(what, where=data / (FOIL if odd[0] in right else RIGHT), given=odd[0])
    annotated = {file: _object(data / file) for file in (TIMES, REFERENCES)}
    captions = CaptionTable()
    # A row per sentence: its paragraph, side, caption and segment; and its references.
    rows: list[tuple[int, int, int, int]] = []
    references: list[list[int]] = []
    ids: list[str] = []
    videos: list[Video] = []
    empty_sentences = 0
    folder = images or (data / FEATURES if (data / FEATURES).is_dir() else None)
    sources = find(folder, right) if folder is not None else {}
    for name in right:
        times, others = (_of(name, entries, data / file) for file, entries in annotated.items())
        # As released: where both files give a duration, the second one's counts.
        source = sources.get(name)
        if isinstance(source, FrameFeatures):
            source = FrameFeatures(source.path, others.duration)
        sides = (right[name], foil[name])
        where = f"{data / TIMES}, video '{name}'"
        used = _shown(times.times, max(map(len, sides)), others.duration, where)
        left = [sum(at < len(side) for at in used) for side in sides]
        empty_sentences += sum(map(len, sides)) - sum(left)
        if not all(left):
            continue
        own = captions.add_all(numbered(others.sentences, f"{name}_r"))
        for side, sentences in enumerate(sides):
            for segment, at in enumerate(used[: left[side]], len(videos)):
                called = f"{name}_{'foil' if side else 'right'}#{at}"
                caption = captions.add(Caption(called, sentences[at]))
                rows.append((len(ids), side, caption, segment))
                references.append([own[place] for place in overlapping(times.times[at], others.times)])
        for at in used:
            start, end = times.times[at]
            videos.append(Video(f"{name}#{at}", source, photo=name, start=start, end=end))
        ids.append(name)
    notes = left_out(empty_sentences, "sentences whose segment is empty")
    notes += left_out(len(right) - len(ids), "videos whose segments are all empty")
    if not ids:
        raise DataError("no video is left", where=noted(str(data), notes))
    names = ("owners", "sides", "captions", "images")
    columns = zip(names, np.array(rows, dtype=np.int64).T.copy(), strict=True)
    questions = Preference(
        tuple(ids),
        **dict(columns),
        votes=np.tile([1.0, 0.0], (len(ids), 1)),
        label=np.zeros(len(ids), dtype=np.int64),
        references=References.of(references),
    )
    if card.size is not None:
        # The card counts what was released, not what is left of it.
        card = card.model_copy(update={"size": card.size - (len(right) - len(ids))})
    where = noted(str(data), notes)
    whole = Benchmark(card, tuple(videos), tuple(captions.items), questions, where, data, data / CORPUS)
    return check_counts(whole.mentioned())


def _paragraphs(file: Path) -> dict[str, list[str]]:
    value = _object(file)
    results = value.get("results")
    if not isinstance(results, dict) or not results:
        raise DataError("no 'results'", where=file, given=", ".join(value), allowed="{video: sentences}")
    paragraphs = {}
    for name, listed in results.items():
        cells = listed if isinstance(listed, list) else []
        cells = [cell.get("sentence") if isinstance(cell, dict) else cell for cell in cells]
        paragraphs[name] = _sentences(cells, f"{file}, video '{name}'")
    return paragraphs


def _shown(times: list[tuple[float, float]], sentences: int, duration: float, where: str) -> list[int]:
    """Which of so many sentences have a segment that is not empty."""
    if sentences > len(times):
        given, allowed = f"{sentences} sentences", f"{len(times)}"
        raise DataError("more sentences than segments", where=where, given=given, allowed=allowed)
    return [at for at, (start, end) in enumerate(times[:sentences]) if start < min(end, duration)]


def overlapping(segment: tuple[float, float], others: list[tuple[float, float]]) -> list[int]:
    """Which segments share more than `OVERLAP` of their own whole seconds with this one; all where none does.

    Seconds are counted as EMScore's code does, from the one in which a segment starts to the one in which it
    ends, both included.
    """
    first, last = int(segment[0]), int(segment[1])
    positions = []
    for at, (start, end) in enumerate(others):
        begin, stop = int(start), int(end)
        shared = min(last, stop) - max(first, begin) + 1
        if stop >= begin and max(shared, 0) / (stop - begin + 1) > OVERLAP:
            positions.append(at)
    return positions or list(range(len(others)))


def _sentences(value: Any, where: str) -> list[str]:
    if not isinstance(value, list) or not value:
        raise DataError("no sentences", where=where, given=shown(value))
    return [
        clean_caption(cell, f"{where}, sentence {at}", "sentence") for at, cell in enumerate(value, start=1)
    ]


def _of(name: str, entries: dict[str, Any], path: Path) -> _Entry:
    where = f"{path}, video '{name}'"
    entry = entries.get(name)
    if entry is None:
        raise DataError("a video is not in the file", where=path, given=name)
    try:
        duration = float(entry["duration"])
        times = [(float(start), float(end)) for start, end in entry["timestamps"]]
        sentences = _sentences(entry["sentences"], where)
    except (KeyError, TypeError, ValueError):
        allowed = "duration, sentences, timestamps"
        raise DataError("not as released", where=where, given=shown(entry), allowed=allowed) from None
    if not (np.isfinite(duration) and duration > 0 and np.isfinite(times).all()):
        raise DataError("a duration or a time is no number of seconds", where=where, given=shown(entry))
    if len(sentences) != len(times):
        raise DataError("not a time for every sentence", where=where, given=shown(entry))
    return _Entry(duration, sentences, times)


def _object(path: Path) -> dict[str, Any]:
    value = parse_json(read_text(path), where=path)
    if not isinstance(value, dict):
        raise DataError("not an object by video", where=path, given=shown(value))
    return value
