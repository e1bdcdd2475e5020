"""Digests of questions: benchmarks that share one ask the same, whatever the order of their items."""

from collections.abc import Sequence

import numpy as np

from counterfoil.data.galleries import Gallery
from counterfoil.data.questions import Choice, Quad
from counterfoil.data.ratings import Preference, Rated
from counterfoil.metrics.ranks import Positives
from counterfoil.store import digest_value


def questions_digest(
    questions: Quad | Choice | Gallery | Rated | Preference, texts: Sequence[object], names: Sequence[object]
) -> str:
    """Names questions; `texts` and `names` stand for the captions and the images that they point to."""
    if isinstance(questions, Gallery):
        return _gallery_digest(questions, texts, names)
    if isinstance(questions, Rated | Preference):
        return _judged_digest(questions, texts, names)
    captions, images = questions.pairs()
    return digest_value(
        {
            "form": questions.form,
            "ids": questions.ids,
            "captions": [texts[i] for i in captions.reshape(-1).tolist()],
            "images": [names[i] for i in images.reshape(-1).tolist()],
            "shape": captions.shape,
            "groupings": {name: list(labels) for name, labels in questions.groupings.items()},
        }
    )


def _judged_digest(questions: Rated | Preference, texts: Sequence[object], names: Sequence[object]) -> str:
    """Names candidates, images, references and what people said."""
    references = questions.references
    facts: dict[str, object] = {
        "form": questions.form,
        "ids": questions.ids,
        "captions": [texts[i] for i in questions.captions],
        "images": [names[i] for i in questions.images],
        "references": references and [references.counts.tolist(), [texts[i] for i in references.captions]],
        "groupings": {name: list(labels) for name, labels in questions.groupings.items()},
    }
    if isinstance(questions, Rated):
        said = [[None if np.isnan(value) else value for value in row] for row in questions.ratings.tolist()]
        facts |= {"ratings": said, "raters": questions.raters, "decimals": questions.decimals}
    else:
        facts |= {
            "owners": questions.owners.tolist(),
            "sides": questions.sides.tolist(),
            "votes": questions.votes.tolist(),
            "label": questions.label.tolist(),
            "draws": [questions.sample, questions.draws, questions.seed],
        }
    return digest_value(facts)


def _gallery_digest(questions: Gallery, texts: Sequence[object], names: Sequence[object]) -> str:
    """Names queries, items in their order, parts, groups and what is right: rankings hold positions."""
    facts: dict[str, object] = {
        "form": questions.form,
        "ids": questions.ids,
        "captions": list(texts),
        "images": list(names),
        "owners": questions.owners.tolist(),
        "parts": [
            parts if parts is None else parts.tolist()
            for parts in (questions.image_parts, questions.caption_parts)
        ],
        "groupings": {name: list(labels) for name, labels in questions.groupings.items()},
    }
    for name, search in (("i2t", questions.i2t), ("t2i", questions.t2i)):
        found = search.positives
        if isinstance(found, Positives):
            facts[name] = [
                array.tolist() for array in (search.queries, found.starts, found.items, found.gains)
            ]
        else:
            codes = [np.packbits(c, axis=1).tobytes().hex() for c in (found.query_codes, found.item_codes)]
            facts[name] = [search.queries.tolist(), *codes, list(found.thresholds), found.cap]
    return digest_value(facts)
