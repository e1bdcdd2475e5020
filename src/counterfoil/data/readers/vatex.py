"""VATEX-EVAL: captions of videos that three people each rated, as pickles.

    candidates_list.pkl   N captions
    gts_list.pkl          N lists of references, ten or so each
    human_scores.pkl      3 N ratings: all of the first rater, then the second's, then the third's
    video_ids.pkl         N names of videos
    VATEX-EVAL_video_feats/{name}.pt   (frames, width) features; or the videos in a folder of their own

vatex_train_en_annotations.json, beside them, is what EMScore takes the weights of its tokens from.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.columns import shown
from counterfoil.data.decoding import Sampling
from counterfoil.data.readers.hub import not_on_hub
from counterfoil.data.readers.human_ratings import (
    CaptionTable,
    RatingRows,
    Skipped,
    clean_caption,
    placed,
    rated,
    unique_ids,
)
from counterfoil.data.references import References
from counterfoil.data.video_files import find
from counterfoil.data.videos import Video
from counterfoil.errors import DataError
from counterfoil.inputs.pickled import plain_pickle

FEATURES = "VATEX-EVAL_video_feats"
CORPUS = "vatex_train_en_annotations.json"

#: EMScore looks at so many frames of each video, evenly spread.
FRAMES = 10

_RATERS, _DECIMALS = 3, 4


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """18,000 captions of 3,000 videos with their first nine references.

    Correlations are taken with each of the three raters and averaged; scores are rounded to four decimals
    first. Videos are found in `images`, else their features in the folder of that name. Raises `DataError`
    for a pickle that is more than data, and naming file and row of what does not fit.
    """
    return _read(card, data, images, 9)


def read_one_reference(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """As `read`, with the first reference alone."""
    return _read(card, data, images, 1)


def _read(card: Card, data: Path | None, images: Path | None, references: int) -> Benchmark:
    if data is None:
        raise not_on_hub(card)
    names = ("candidates_list.pkl", "gts_list.pkl", "human_scores.pkl", "video_ids.pkl")
    files = [data / name for name in names]
    missing = [file.name for file in files if not file.is_file()]
    if missing:
        raise DataError(f"missing: {', '.join(missing)}", where=data, allowed=names)
    spoken_of, written, shown_of = (_listed(plain_pickle(files[at]), files[at]) for at in (0, 1, 3))
    n = len(spoken_of)
    for file, found in ((files[1], written), (files[3], shown_of)):
        if len(found) != n:
            raise DataError("not a row per candidate", where=file, given=len(found), allowed=str(n))
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
        texts = [clean_caption(each, f"{files[1]}, row {row + 1}", "reference") for each in own[:references]]
        listed.append(captions.add_all(texts, f"r{row}"))
    of_row = [
        clean_caption(each, f"{files[3]}, row {row + 1}", "name of a video")
        for row, each in enumerate(shown_of)
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


def _listed(value: Any, where: object) -> Sequence[Any]:
    found = value.tolist() if isinstance(value, np.ndarray) else value
    if not isinstance(found, list | tuple) or not found:
        raise DataError(
            "not a list", where=where, given=shown(value), allowed="a list or an array, not empty"
        )
    return found


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
