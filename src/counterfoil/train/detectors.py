"""Detectors of synthetic items: frozen encoders, and one sigmoid unit per modality that is trained.

How far they get on a benchmark says how far one gets without understanding anything (BiVLC, section 5.3).
What the encoders say of each distinct item is computed once; the units are trained on that.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy import ndarray
from torch import Tensor, nn
from torch.nn import functional

from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.plan import Note, Progress, silent, warn
from counterfoil.errors import InputError, ModelError
from counterfoil.models import checkpoint, networks
from counterfoil.models.base import Options, text_of
from counterfoil.models.networks import Backbone, Detector, DetectorNetwork
from counterfoil.models.runtime import device_of, fewest_threads
from counterfoil.store import check_writable
from counterfoil.train.dataloaders import order
from counterfoil.train.images import BatchImages, ImageStore, readable_rows
from counterfoil.train.optim import learning_rate, optimiser
from counterfoil.train.recipes import Detection

#: Items that go through an encoder at a time.
_AT_ONCE = 64


class FrozenFeatures(NamedTuple):
    """The encoder's features of the items of one modality, on the CPU, and the two items of each row."""

    items: Float[Tensor, "items width"]
    #: For each row its natural and its synthetic item.
    rows: Int[ndarray, "n 2"]

    def batch(self, some: Int[ndarray, "b"]) -> tuple[Tensor, Tensor]:
        """Features (2b, width), first the natural ones, and labels (2b,)."""
        # Transposed, so that all natural ones come first.
        items = self.items[torch.from_numpy(self.rows[some].T.reshape(-1).copy())]
        return items, torch.cat([torch.zeros(len(some)), torch.ones(len(some))])


def encoded(
    backbone: Backbone, data: TrainingSet, recipe: Detection, workers: int, progress: Progress, note: Note
) -> dict[str, FrozenFeatures]:
    """The frozen encoder's features of every distinct image and caption of `data`, computed once."""
    roles = ("image", "negative_image")

    def distinct_of(*columns: str) -> ndarray:
        return np.unique(np.concatenate([data.need(role) for role in columns]))

    # Each picture is read once, so none is kept in memory.
    skip, used = recipe.unreadable == "skip", distinct_of(*roles)
    how: dict[str, Any] = {"workers": workers, "skip": skip, "memory": 0, "progress": progress}
    pictures = ImageStore(data.images, used, backbone.preparation, **how)
    rows = readable_rows(data, np.arange(len(data)), roles, [pictures], backbone.preparation, note)
    if not len(rows):
        raise InputError("no row is left whose images can be read", where=data.source or data.name)
    data = data.select(rows)
    used = distinct_of(*roles)
    requests = [BatchImages(used[start : start + _AT_ONCE]) for start in range(0, len(used), _AT_ONCE)]
    with closing(pictures.batches(requests)) as stream:
        images = _features(backbone, "images", len(used), map(backbone.pixels, stream), progress)
    # Captions alike are encoded once, sorted by length so that little is padding.
    spoken = distinct_of("caption", "negative_caption")
    texts = [text_of(data.captions[position]) for position in spoken]
    distinct = sorted(dict.fromkeys(texts), key=lambda text: (len(text), text))
    batches = (
        backbone.tokens(distinct[start : start + _AT_ONCE]) for start in range(0, len(distinct), _AT_ONCE)
    )
    features = _features(backbone, "captions", len(distinct), batches, progress)
    number = {text: i for i, text in enumerate(distinct)}
    captions = features[[number[text] for text in texts]]
    by_side: dict[str, FrozenFeatures] = {}
    for side, positions, of in (("image", used, images), ("caption", spoken, captions)):
        columns = [np.searchsorted(positions, data.need(role)) for role in (side, f"negative_{side}")]
        # Plain memory: what inference gave takes part in no gradients.
        by_side[side] = FrozenFeatures(of.clone(), np.stack(columns, axis=1))
    return by_side


def _features(
    backbone: Backbone, what: str, total: int, batches: Iterable[Tensor], progress: Progress
) -> Float[Tensor, "items width"]:
    """The frozen encoder's features of "images" or "captions" that come in batches."""
    network = backbone.network
    assert isinstance(network, DetectorNetwork)
    inner = network.inner.eval()
    encode = inner.encode_images if what == "images" else inner.encode_texts
    parts: list[Tensor] = []
    with torch.inference_mode():
        for batch in batches:
            parts.append(networks.unit_input(encode(batch.to(backbone.device()))).float().cpu())
            progress(f"embedding {what}", min(len(parts) * _AT_ONCE, total), total)
    features = torch.cat(parts)
    if bad := int((~torch.isfinite(features).all(dim=1)).sum()):
        problem, given = f"the encoder gives {what} numbers that are not finite", f"{bad} of {len(features)}"
        raise ModelError(problem, where=backbone.name, given=given)
    return features


class Epoch(NamedTuple):
    """How a unit did in one epoch."""

    #: Mean binary cross-entropy per item, and share of items classified correctly, during the epoch.
    loss: float
    accuracy: float
    #: Share of validation items classified correctly after the epoch; NaN without validation.
    validation: float


@dataclass(frozen=True, eq=False)
class FittedDetectors:
    """A detector that was trained, and how that went."""

    backbone: Backbone
    #: "image" and "caption" to what each epoch gave.
    history: Mapping[str, tuple[Epoch, ...]]
    #: The epochs whose units were kept, counted from 1.
    best_epochs: Mapping[str, int]
    recipe: Detection
    data: Mapping[str, Any]
    #: Rows that were not trained on because their pictures could not be read.
    left_out: int = 0

    def detector(self, options: Options = Options(device="cpu")) -> Detector:  # noqa: B008
        """The detector as a `Classifier`. Its network is taken for answering from then on."""
        model = networks.network_model(self.backbone, options, where=self.backbone.name)
        assert isinstance(model, Detector)
        return model

    def save(self, folder: Path) -> None:
        """Write a checkpoint that `counterfoil evaluate FOLDER` takes."""
        epochs = {
            side: [{key: value for key, value in epoch._asdict().items() if value == value} for epoch in some]
            for side, some in self.history.items()
        }
        recipe, data, best = asdict(self.recipe), dict(self.data), dict(self.best_epochs)
        facts = {"recipe": recipe, "data": data, "epochs": epochs, "kept": best}
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
    that many natural items, then as many synthetic ones. The loss is binary cross-entropy, `recipe.epochs`
    epochs for captions and `recipe.image_epochs` for images, `recipe.steps` at most. With `validation` the
    units of the epoch that tells most of its items right are kept, of equal ones the first; without, the
    last. The same data, encoder and recipe give the same detector on one machine. The encoder is frozen and
    stays on `device`.

    Source: BiVLC section 5.3 and Appendix E.3.
    """
    out = None if out is None else Path(out)
    if out is not None:
        check_writable(out, folder=True)
        checkpoint.check_target(out)
    given = [data] if validation is None else [data, validation]
    for rows in given:
        for role in ("negative_image", "negative_caption"):
            rows.need(role)
        if not len(rows):
            raise InputError("there are no rows to train a detector on", where=rows.source or rows.name)
    place = device_of(Options(device=device), where=f"recipe {recipe.name}")
    backbone.network.to(place)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.seed)
        detecting = networks.detector(backbone)
    network = detecting.network
    assert isinstance(network, DetectorNetwork)
    sets = [encoded(detecting, rows, recipe, workers, progress, note) for rows in given]
    history: dict[str, tuple[Epoch, ...]] = {}
    best_epoch: dict[str, int] = {}
    for side, unit, epochs in (
        ("image", network.image_unit, recipe.image_epochs),
        ("caption", network.text_unit, recipe.epochs),
    ):
        pairs = [training_set[side] for training_set in sets]
        with fewest_threads(unit, place):
            history[side], best_epoch[side] = _learn(unit, pairs, recipe, epochs, place, side, progress)
    facts = {"name": data.name, "source": data.source, "rows": len(data)}
    left_out = len(data) - len(sets[0]["image"].rows)
    fitted = FittedDetectors(detecting, history, best_epoch, recipe, facts, left_out)
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
    best, best_epoch, state, step = -1.0, 0, {}, 0
    while step < total:
        rows = order(n, len(history), recipe.seed)
        loss, right, seen = 0.0, 0, 0
        for start in starts[: total - step]:
            items, labels = (
                tensor.to(device) for tensor in data.batch(rows[start : start + recipe.batch_size])
            )
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
            best, best_epoch = validated, len(history)
            state = {name: tensor.detach().clone() for name, tensor in unit.state_dict().items()}
    unit.load_state_dict(state)
    return tuple(history), best_epoch


def _accuracy(unit: nn.Linear, pair: FrozenFeatures, device: torch.device) -> float:
    """Share of items classified correctly; exactly one half is "natural", as in `metrics.detection`."""
    right = 0
    with torch.inference_mode():
        for i in range(0, len(pair.rows), 4096):
            items, labels = pair.batch(np.arange(i, min(i + 4096, len(pair.rows))))
            right += int(((unit(items.to(device))[:, 0] > 0).cpu() == (labels > 0)).sum())
    return right / (2 * len(pair.rows))
