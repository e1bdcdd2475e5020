"""Pooling in rounds whose models are trained again on what was found."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.data.training_rows import TrainingSet
from counterfoil.engine.retrieve import rank_galleries
from counterfoil.engine.session import Session
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import save_run
from counterfoil.scorers.base import Options
from counterfoil.studies.plan import SHORT
from counterfoil.tasks.pool_judges import RoundOptions
from counterfoil.tasks.pool_rounds import pool_rounds
from counterfoil.world.benchmarks import gallery

pytestmark = [pytest.mark.slow, pytest.mark.models]


def test_networks_are_trained_again_on_what_was_found(tmp_path: Path) -> None:
    from counterfoil.scorers import checkpoint, small
    from counterfoil.train.loop import fit
    from counterfoil.train.saving import Monitors

    drawn = gallery(60, seed=2, size=48)
    texts = [caption.text or "" for caption in drawn.captions]
    image = {each.id: at for at, each in enumerate(drawn.images)}
    caption = {each.id: at for at, each in enumerate(drawn.captions)}
    owners = drawn.gallery.owners
    trained: list[int] = []

    def networks(images: np.ndarray, captions: np.ndarray) -> list[Path]:
        made = []
        rows = {"image": images.astype(np.int64), "caption": captions.astype(np.int64)}
        data = TrainingSet("found", drawn.images, drawn.captions, rows, {})
        for seed in (0, 1):
            recipe = SHORT.recipe("coco", seed=seed)
            recipe = replace(recipe, steps=60, batch_size=32, warmup=5, validate_every=60)
            place = tmp_path / f"{len(trained)}-{seed}"
            network = small.backbone(texts, sizes=small.Sizes(picture=48), seed=seed)
            fit(network, recipe, data, out=place, monitors=Monitors())
            scorer = checkpoint.load(str(place), Options(device="cpu"))
            answers = rank_galleries([drawn], scorer, session=Session())[0]
            result = evaluate(drawn, answers, scorer=f"net-{seed}", draws=20)
            made.append(tmp_path / "runs" / str(len(trained)) / f"net-{seed}")
            save_run(made[-1], drawn, answers, result, {})
        trained.append(len(images))
        return made

    def again(positives: pa.Table) -> list[Path]:
        pairs = {(at, int(own)) for at, own in enumerate(owners.tolist())}
        found = {(caption[p["caption"]], image[p["image"]]) for p in positives.to_pylist()}
        both = np.array(sorted(pairs | found))
        return networks(both[:, 1], both[:, 0])

    first = networks(owners, np.arange(len(texts)))
    options = RoundOptions(rounds=2, k=3, draws=0)
    fixed = pool_rounds(first, "world", options)
    taught = pool_rounds(first, "world", options, retrain=again)
    assert taught.rounds[0].to_json() == fixed.rounds[0].to_json()
    assert len(trained) == 2
    assert trained[1] > trained[0]
    # New networks rank other items first than the same lists read further down.
    assert set(taught.judgements["pair"].to_pylist()) != set(fixed.judgements["pair"].to_pylist())
