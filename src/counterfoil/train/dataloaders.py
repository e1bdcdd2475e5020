"""The rows of a training made ready: which can be used, and what feeds each stage with them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.data.training import TrainingSet
from counterfoil.engine.progress import Note, Progress
from counterfoil.scorers.networks import Backbone
from counterfoil.train.augmentation import Variation
from counterfoil.train.images import ImageStore, say_unreadable
from counterfoil.train.objectives import Objective
from counterfoil.train.prefetch import Batch, Feed
from counterfoil.train.tokens import TokenTable


def dataloaders(
    data: TrainingSet,
    *,
    backbone: Backbone,
    aims: Sequence[Objective],
    variations: Sequence[Variation],
    skip: bool,
    left_out: Sequence[int] = (),
    workers: int,
    seed: int,
    pin: bool,
    progress: Progress,
    note: Note,
) -> tuple[list[Feed], Int[ndarray, "rows"]]:
    """A feed for each stage, and the rows of `data` that they feed; stages share what is prepared.

    `aims` and `variations` say of each stage what it encodes and how that is varied. Rows `left_out`
    are not fed; with `skip` neither are those whose pictures cannot be read, and `note` says so. `pin` makes
    batches that can be copied to a GPU while it computes. Raises `DataError` naming an image that cannot be
    read, and `InputError` where a role is missing.
    """
    rows = np.setdiff1d(np.arange(len(data)), np.asarray(left_out, dtype=np.int64))
    roles = sorted({role for aim in aims for role in aim.images})
    shared: dict[bool, ImageStore] = {}
    for varied in sorted({each.of_pictures for each in variations}):
        shared[varied] = ImageStore(
            data.images,
            np.unique(np.concatenate([data.need(role)[rows] for role in roles])),
            backbone.preparation,
            workers=workers,
            varies=varied,
            skip=skip,
            progress=progress,
        )
    lost = sorted({position for pictures in shared.values() for position in pictures.unreadable})
    if lost:
        gone = np.any([np.isin(data.need(role)[rows], lost) for role in roles], axis=0)
        say_unreadable(data.images, lost, int(gone.sum()), note)
        rows = rows[~gone]
    tokens = TokenTable(data.captions, backbone.tokens)
    finish = _pinned if pin else _as_is
    chosen = data.select(rows)
    feeds = []
    for aim, variation in zip(aims, variations, strict=True):
        pictures = shared[variation.of_pictures]
        works_ahead = pin or not pictures.in_memory
        roles_of = (aim.images, aim.texts)
        feeds.append(
            Feed(chosen, backbone, pictures, tokens, *roles_of, variation, seed, finish, works_ahead)
        )
    return feeds, rows


def _pinned(batch: Batch) -> Batch:
    """A batch that can be copied to a GPU while it computes."""
    return batch._replace(pixels=batch.pixels.pin_memory(), tokens=batch.tokens.pin_memory())


def _as_is(batch: Batch) -> Batch:
    return batch
