"""ActivityNet-FOIL: two paragraphs about a video, of which one has wrong words in it, as EMScore reads them.

    final_right_video_sentences.json   {"results": {video: [{"sentence"}]}}: what people wrote
    final_foil_video_sentences.json    the same with wrong words
    anet_entities_test_1.json          {video: {"duration", "sentences", "timestamps"}}: when each sentence is
    anet_entities_test_2.json          the same by other people: the references
    ActivityNet-FOIL_video_feats/{video}.pt   (frames, width) features; or the videos in a folder of their own

EMScore takes the weights of its tokens from train.json.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import AfterValidator, BaseModel, BeforeValidator, Field

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Preference
from counterfoil.benchmarks.readers.questions import CaptionTable, check_counts, left_out, noted, numbered
from counterfoil.benchmarks.readers.released_files import released_set
from counterfoil.benchmarks.records import Caption
from counterfoil.benchmarks.references import References, collapsed
from counterfoil.benchmarks.tables import shown
from counterfoil.benchmarks.videos import FrameFeatures, Video, find
from counterfoil.errors import DataError
from counterfoil.inputs.files import check_value, read_value

FEATURES = "ActivityNet-FOIL_video_feats"
CORPUS = "train.json"
RIGHT, FOIL = "final_right_video_sentences.json", "final_foil_video_sentences.json"
TIMES, REFERENCES = "anet_entities_test_1.json", "anet_entities_test_2.json"

#: A reference is one of a sentence's own where more than this share of its seconds are the sentence's.
OVERLAP = 0.4

_Sentence = Annotated[str, AfterValidator(collapsed), Field(min_length=1)]
#: In one of the files a sentence is an object.
_Text = Annotated[_Sentence, BeforeValidator(lambda it: it.get("sentence") if isinstance(it, dict) else it)]
_Seconds = Annotated[float, Field(allow_inf_nan=False)]


class _Paragraphs(BaseModel):
    """The sentences of each video."""

    results: Annotated[dict[str, Annotated[list[_Text], Field(min_length=1)]], Field(min_length=1)]


class _Entry(BaseModel):
    """One video of an annotation file: when each of its sentences is, from and to which second."""

    duration: Annotated[_Seconds, Field(gt=0)]
    sentences: Annotated[list[_Sentence], Field(min_length=1)]
    timestamps: list[tuple[_Seconds, _Seconds]]


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """1,900 pairs of paragraphs, one per video; a paragraph's score is the mean over its sentences.

    The first candidate is the right one. Each sentence is asked about its own segment of the video, the k-th
    of anet_entities_test_1.json, with the references that overlap it. Sentences whose segment is empty are
    left out on both sides, and videos of which none is left.
    """
    released_set(card, data, (RIGHT, FOIL, TIMES, REFERENCES))
    assert data is not None
    right, foil = (read_value(data / name, _Paragraphs).results for name in (RIGHT, FOIL))
    odd = sorted(set(right) ^ set(foil))
    if odd:
        what = f"{len(odd):,} videos have one paragraph and not the other"
        raise DataError(what, where=data / (FOIL if odd[0] in right else RIGHT), given=odd[0])
    annotated = {file: read_value(data / file, dict[str, Any]) for file in (TIMES, REFERENCES)}
    captions = CaptionTable()
    # A row per sentence: its paragraph, side, caption and segment; and its references.
    rows: list[tuple[int, int, int, int]] = []
    references: list[list[int]] = []
    ids, videos, empty_sentences = list[str](), list[Video](), 0
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
        used = _shown(times.timestamps, max(map(len, sides)), others.duration, where)
        left = [sum(position < len(side) for position in used) for side in sides]
        empty_sentences += sum(map(len, sides)) - sum(left)
        if not all(left):
            continue
        more_captions = captions.add_all(numbered(others.sentences, f"{name}_r"))
        for side, sentences in enumerate(sides):
            for segment, position in enumerate(used[: left[side]], len(videos)):
                called = f"{name}_{'foil' if side else 'right'}#{position}"
                caption = captions.add(Caption(called, sentences[position]))
                rows.append((len(ids), side, caption, segment))
                overlap = overlapping(times.timestamps[position], others.timestamps)
                references.append([more_captions[place] for place in overlap])
        for position in used:
            start, end = times.timestamps[position]
            videos.append(Video(f"{name}#{position}", source, photo=name, start=start, end=end))
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


def _shown(times: list[tuple[float, float]], sentences: int, duration: float, where: str) -> list[int]:
    """Which of the first `sentences` sentences have a segment that is not empty."""
    if sentences > len(times):
        given, allowed = f"{sentences} sentences", f"{len(times)}"
        raise DataError("more sentences than segments", where=where, given=given, allowed=allowed)
    return [i for i, (start, end) in enumerate(times[:sentences]) if start < min(end, duration)]


def overlapping(segment: tuple[float, float], others: list[tuple[float, float]]) -> list[int]:
    """Which segments share more than `OVERLAP` of their own whole seconds with this one; all where none does.

    Seconds count as in EMScore's code: those in which a segment starts and ends are both included.
    """
    first, last = int(segment[0]), int(segment[1])
    positions = []
    for i, (start, end) in enumerate(others):
        begin, stop = int(start), int(end)
        shared = min(last, stop) - max(first, begin) + 1
        if stop >= begin and max(shared, 0) / (stop - begin + 1) > OVERLAP:
            positions.append(i)
    return positions or list(range(len(others)))


def _of(name: str, entries: dict[str, Any], path: Path) -> _Entry:
    if name not in entries:
        raise DataError("a video is not in the file", where=path, given=name)
    where = f"{path}, video '{name}'"
    entry: _Entry = check_value(entries[name], _Entry, where=where)
    if len(entry.sentences) != len(entry.timestamps):
        raise DataError("not a time for every sentence", where=where, given=shown(entries[name]))
    return entry
