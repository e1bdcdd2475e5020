"""Detectors of synthetic items: frozen encoders, and one sigmoid unit per modality that is trained.

How far they get on a benchmark says how far one gets without understanding anything (BiVLC, section 5.3).
What the encoders say of each distinct item is computed once; the units are trained on that.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from counterfoil.data.training_rows import TrainingSet
from counterfoil.engine.plan import Note, Progress, silent, warn
from counterfoil.errors import InputError
from counterfoil.scorers import checkpoint
from counterfoil.scorers.base import Options
from counterfoil.scorers.checkpoint_scorer import scorer
from counterfoil.scorers.detector import Detector, DetectorNetwork, on
from counterfoil.scorers.networks import Backbone
from counterfoil.scorers.runtime import device_of
from counterfoil.store import check_writable
from counterfoil.train.batches import order
from counterfoil.train.frozen_features import FrozenFeatures, encoded
from counterfoil.train.optim import learning_rate, optimiser
from counterfoil.train.recipes import Detection


class Epoch(NamedTuple):
    """How a unit did in one epoch."""

    #: Mean binary cross-entropy per item, and share of items told right, as the unit was while it learnt.
    loss: float
    accuracy: float
    #: Share of validation items told right after the epoch; NaN without validation.
    validation: float


@dataclass(frozen=True, eq=False)
class FittedDetectors:
    """A detector that was trained, and how that went."""

    backbone: Backbone
    #: "image" and "caption" to what each epoch gave.
    history: Mapping[str, tuple[Epoch, ...]]
    #: The epochs whose units were kept, counted from 1.
    kept: Mapping[str, int]
    recipe: Detection
    data: Mapping[str, Any]
    #: Rows that were not trained on because their pictures could not be read.
    left_out: int = 0

    def detector(self, options: Options = Options(device="cpu")) -> Detector:  # noqa: B008
        """The detector as a `Classifier`. Its network is taken for answering from then on."""
        found = scorer(self.backbone, options, where=self.backbone.name)
        assert isinstance(found, Detector)
        return found

    def save(self, folder: Path) -> None:
        """Write a checkpoint that `counterfoil evaluate FOLDER` takes; raises as `trained.save` does."""
        epochs = {
            side: [{key: value for key, value in each._asdict().items() if value == value} for each in some]
            for side, some in self.history.items()
        }
        facts = {
            "recipe": asdict(self.recipe),
            "data": dict(self.data),
            "epochs": epochs,
            "kept": dict(self.kept),
        }
        checkpoint.save(folder, self.backbone, facts)


def fit(
    backbone: Backbone,
    recipe: Detection,
    data: TrainingSet,
    *,
    validation: TrainingSet | None = None,
    out: str | Path | None = None,
    device: str = "auto",
    workers: int = 0,
    progress: Progress = silent,
    note: Note = warn,
) -> FittedDetectors:
    """Train a unit on images against negative images, and one on captions against negative captions.

    Images and captions are natural (0), their negatives synthetic (1). A batch is `recipe.batch_size` rows:
    so many natural items, then as many synthetic ones. The loss is binary cross-entropy, `recipe.epochs`
    epochs for captions and `recipe.image_epochs` for images; `recipe.steps` ends each unit's training there.
    With `validation` the units of the epoch that tells most of its items right are kept, of equal ones the
    first; without, those of the last. Rows come in the order of `batches.order`, units start from
    `recipe.seed`: the same data, encoder and recipe give the same detector on one machine.

    With `out` the detector is saved there as a checkpoint (`Fitted.save`). The encoder is frozen and stays
    where it is used: on `device`. Raises `InputError` where the data have no negative captions or images,
    `DataError` for images that cannot be read (with `recipe.unreadable` "skip" their rows are left out, and
    `note` says so), and `ModelError` for an encoder whose numbers are not finite.

    Source: BiVLC section 5.3 and Appendix E.3.
    """
    out = None if out is None else Path(out)
    if out is not None:
        check_writable(out, folder=True)
        checkpoint.check_target(out)
    given = [data] if validation is None else [data, validation]
    for each in given:
        for role in ("negative_image", "negative_caption"):
            each.need(role)
        if not len(each):
            raise InputError("there are no rows to train a detector on", where=each.source or each.name)
    place = device_of(Options(device=device), where=f"recipe {recipe.name}")
    backbone.network.to(place)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        made = on(backbone)
    network = made.network
    assert isinstance(network, DetectorNetwork)
    sets = [
        encoded(made, each, recipe, workers, progress, note)
        for each in (data, validation)
        if each is not None
    ]
    history: dict[str, tuple[Epoch, ...]] = {}
    kept: dict[str, int] = {}
    for side, unit, epochs in (
        ("image", network.image_unit, recipe.image_epochs),
        ("caption", network.text_unit, recipe.epochs),
    ):
        pairs = [each[side] for each in sets]
        history[side], kept[side] = _learn(unit, pairs, recipe, epochs, place, side, progress)
    said = {"name": data.name, "source": data.source, "rows": len(data)}
    fitted = FittedDetectors(made, history, kept, recipe, said, len(data) - len(sets[0]["image"].rows))
    if out is not None:
        fitted.save(out)
    return fitted


def _learn(
    unit: nn.Linear,
    sets: Sequence[FrozenFeatures],
    recipe: Detection,
    epochs: int,
    device: torch.device,
    side: str,
    progress: Progress,
) -> tuple[tuple[Epoch, ...], int]:
    """Train one unit in place; what each epoch gave, and the number of the one that was kept."""
    data = sets[0]
    n = len(data.rows)
    starts = range(0, n, recipe.batch_size)
    total = epochs * len(starts) if recipe.steps is None else min(recipe.steps, epochs * len(starts))
    steps = optimiser([{"params": list(unit.parameters()), "weight_decay": recipe.weight_decay}], recipe)
    history: list[Epoch] = []
    best, kept, state = -1.0, 0, {}
    step = 0
    for epoch in range(epochs):
        if step >= total:
            break
        rows = order(n, epoch, recipe.seed)
        loss, right, seen = 0.0, 0, 0
        for at in starts[: total - step]:
            items, labels = (each.to(device) for each in data.batch(rows[at : at + recipe.batch_size]))
            for group in steps.param_groups:
                group["lr"] = learning_rate(step, recipe=recipe, total=total)
            logits = unit(items)[:, 0]
            value = functional.binary_cross_entropy_with_logits(logits, labels)
            steps.zero_grad(set_to_none=True)
            value.backward()
            steps.step()
            loss += float(value.detach()) * len(labels)
            right += int(((logits.detach() > 0) == (labels > 0)).sum())
            seen += len(labels)
            step += 1
            progress(f"training the {side} detector", step, total)
        validated = _accuracy(unit, sets[1], device) if len(sets) > 1 else float("nan")
        history.append(Epoch(loss / seen, right / seen, validated))
        # Without validation no epoch is better than the last.
        if len(sets) == 1 or validated > best:
            best, kept = validated, epoch + 1
            state = {name: each.detach().clone() for name, each in unit.state_dict().items()}
    unit.load_state_dict(state)
    return tuple(history), kept


def _accuracy(unit: nn.Linear, pair: FrozenFeatures, device: torch.device) -> float:
    """Share of items told right; exactly one half is "natural", as in `metrics.detection`."""
    right = 0
    with torch.inference_mode():
        for at in range(0, len(pair.rows), 4096):
            items, labels = pair.batch(np.arange(at, min(at + 4096, len(pair.rows))))
            right += int(((unit(items.to(device))[:, 0] > 0).cpu() == (labels > 0)).sum())
    return right / (2 * len(pair.rows))
