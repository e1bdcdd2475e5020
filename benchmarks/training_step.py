"""How long one optimiser step of ViT-B-32 takes, here and in open_clip's own loop, and what a GPU does.

    python benchmarks/training_step.py [--steps 6] [--batch 16] [--rounds 2] [--accumulate 4]

The yardstick is `open_clip_train.train.train_one_epoch`, with open_clip's model, loss, AdamW and scheduler as
its `main` sets them up. It is given its batches finished in memory; ours decodes, prepares and tokenises its
rows within the time that is counted. Both take turns in one run on the same machine with the same threads;
the first step of each is left out, and the median of the others counts. On a GPU there is a second part:
images per second in bf16 at a batch of 400, and the share of the time that was spent waiting for data. Last
comes one step of `--accumulate` batches as one (GradCache) beside a step of one batch as large, each in a
process of its own: time, and peak memory (of the process, or of the GPU).
"""

import argparse
import resource
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import pairwise
from multiprocessing import get_context
from statistics import median
from time import perf_counter
from types import SimpleNamespace

import numpy as np
import open_clip
import torch

from counterfoil.benchmarks.records import Caption, Image, PixelSource
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.models import registry
from counterfoil.train.loop import Fitted, fit
from counterfoil.train.recipes import Coco
from counterfoil.train.saving import Saving
from processor import precisions

ARCHITECTURE = "ViT-B-32"
WORDS = (
    *("a", "red", "green", "large", "small", "dog", "cat", "on", "under", "the", "table", "street"),
    *("with", "people", "two", "old", "tree", "near", "water"),
)


def rows(n: int) -> TrainingSet:
    """Photographs of noise, 320 x 240, with captions of about COCO's length."""
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (min(n, 400), 240, 320, 3)).astype(np.uint8)
    return TrainingSet(
        "noise",
        tuple(Image(str(i), PixelSource(pictures[i % len(pictures)])) for i in range(n)),
        tuple(Caption(str(i), " ".join(rng.choice(WORDS, rng.integers(8, 14)))) for i in range(n)),
        {"image": np.arange(n), "caption": np.arange(n)},
    )


def ours(
    data: TrainingSet, *, batch: int, steps: int, precision: str, device: str, accumulate: int = 1
) -> list[float]:
    """Seconds of each step but the first."""
    times: list[float] = []

    def progress(stage: str, done: int, total: int) -> None:
        if stage == "training":
            times.append(perf_counter())

    recipe = Coco(
        batch_size=batch,
        accumulate=accumulate,
        steps=steps,
        select="last",
        precision=precision,
        max_logit_scale=100.0,
        warmup=2,
    )
    torch.manual_seed(0)
    backbone = registry.backbone(f"open-clip:{ARCHITECTURE}")
    fit(backbone, recipe, data, device=device, progress=progress, saving=Saving(journal_every=1000))
    # The first mark is the start, so the first difference is the first step.
    return [later - earlier for earlier, later in pairwise(times[1:])]


class Ready:
    """open_clip's loader, with every batch finished; it remembers when it was asked for the next one."""

    def __init__(self, batches: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        self.batches = batches
        self.num_batches, self.num_samples = len(batches), len(batches) * len(batches[0][0])
        self.times: list[float] = []

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for each in self.batches:
            self.times.append(perf_counter())
            yield each
        self.times.append(perf_counter())


def theirs(data: TrainingSet, *, batch: int, steps: int, precision: str, device: str) -> list[float]:
    """Seconds of each step but the first; none where open_clip's loop is not the one of its 2.x and 3.x."""
    try:
        from open_clip_train.scheduler import cosine_lr
        from open_clip_train.train import train_one_epoch
    except ImportError as error:
        print(f"open_clip {open_clip.__version__} has another training loop ({error}): ours alone is timed")
        return []
    torch.manual_seed(0)
    model, _, prepare = open_clip.create_model_and_transforms(ARCHITECTURE, output_dict=True, device=device)
    tokenizer = open_clip.get_tokenizer(ARCHITECTURE)
    batches = []
    for step in range(steps):
        at = range(step * batch, (step + 1) * batch)
        images = torch.stack([prepare(data.images[i].decode()) for i in at])
        batches.append((images, tokenizer([data.captions[i].text for i in at])))
    named, never = list(model.named_parameters()), ("bn", "ln", "bias", "logit_scale")
    flat = [p for name, p in named if p.ndim < 2 or any(part in name for part in never)]
    known = {id(p) for p in flat}
    groups = [
        {"params": flat, "weight_decay": 0.0},
        {"params": [p for _, p in named if id(p) not in known], "weight_decay": 0.1},
    ]
    optimiser = torch.optim.AdamW(groups, lr=1e-6, betas=(0.9, 0.98), eps=1e-6)
    loader = Ready(batches)
    arguments = SimpleNamespace(
        device=device,
        precision={"fp32": "fp32", "bf16": "amp_bf16"}[precision],
        distill=False,
        accum_freq=1,
        skip_scheduler=False,
        grad_clip_norm=None,
        horovod=False,
        log_every_n_steps=10**9,
        batch_size=batch,
        world_size=1,
        rank=0,
        local_rank=0,
        log_local=False,
        wandb=False,
    )
    feeding = {"train": SimpleNamespace(dataloader=loader, set_epoch=lambda epoch: None)}
    loss = open_clip.ClipLoss(local_loss=False, gather_with_grad=False, cache_labels=True)
    train_one_epoch(
        model, feeding, loss, 0, optimiser, None, cosine_lr(optimiser, 1e-6, 2, steps), None, arguments
    )
    return [later - earlier for earlier, later in pairwise(loader.times[1:])]


def on_a_gpu(batch: int, steps: int) -> Fitted:
    """bf16 at a large batch."""
    recipe = Coco(batch_size=batch, steps=steps, select="last", precision="bf16", warmup=2)
    backbone = registry.backbone(f"open-clip:{ARCHITECTURE}")
    return fit(backbone, recipe, rows(4 * batch), device="cuda", saving=Saving(journal_every=10**9))


def large(batch: int, accumulate: int, steps: int, precision: str, device: str) -> tuple[float, int]:
    """Median seconds of a step, and the most memory that was in use, in bytes."""
    data = rows(batch * accumulate * steps)
    times = ours(data, batch=batch, accumulate=accumulate, steps=steps, precision=precision, device=device)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return median(times), torch.cuda.max_memory_allocated() if device == "cuda" else peak


def compare_large(batch: int, accumulate: int, steps: int, precision: str, device: str) -> None:
    """Print what a step of several batches as one takes beside a step of one large batch."""
    found = []
    for size, times in ((batch * accumulate, 1), (batch, accumulate)):
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as alone:
            found.append(alone.submit(large, size, times, steps, precision, device).result())
    (whole, most), (several, less) = found
    print(
        f"{precision}, a step of {batch * accumulate} rows: {1e3 * whole:.0f} ms, {most / 2**30:.2f} GiB as "
        f"one batch, {1e3 * several:.0f} ms, {less / 2**30:.2f} GiB as {accumulate} of {batch}: "
        f"{several / whole:.2f} of the time, {less / most:.2f} of the memory"
    )


def main() -> None:
    """Print the medians and their ratio for each precision."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--accumulate", type=int, default=4)
    parser.add_argument("--precision", choices=("fp32", "bf16"), action="append")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    asked = parser.parse_args()
    data = rows(asked.batch * asked.steps)
    print(f"{ARCHITECTURE}, batch {asked.batch}, {asked.device}, {torch.get_num_threads()} threads")
    for precision in precisions(asked.precision, asked.device):
        how = {"batch": asked.batch, "steps": asked.steps, "precision": precision, "device": asked.device}
        here: list[float] = []
        there: list[float] = []
        for _ in range(asked.rounds):
            there += theirs(data, **how)
            here += ours(data, **how)
        if not there:
            print(f"{precision}: {1e3 * median(here):.0f} ms here (least {1e3 * min(here):.0f} ms)")
            continue
        ratio = median(here) / median(there)
        print(
            f"{precision}: {1e3 * median(here):.0f} ms here, {1e3 * median(there):.0f} ms in open_clip's, "
            f"ratio {ratio:.2f} (least {1e3 * min(here):.0f} and {1e3 * min(there):.0f} ms)"
        )
    if torch.cuda.is_available():
        on_a_gpu(400, 10)
        found = on_a_gpu(400, 60)
        print(f"bf16, batch 400: {found.rows_per_second:.0f} images per second, {found.waiting:.1%} waiting")
    for precision in precisions(asked.precision, asked.device):
        compare_large(asked.batch, asked.accumulate, asked.steps, precision, asked.device)


if __name__ == "__main__":
    main()
