"""What a GPU does here and what bounds it: towers, training and pairs, against its rate of products.

    python benchmarks/gpu.py                        on the GPU; one line where there is none
    python benchmarks/gpu.py --device cpu --small   the same code on the processor, on small models

Needs nothing but this repository and its packages: models have random weights, which cost what trained ones
cost, pictures and captions are made up. Measured are

* products: floating-point operations a second in large products of matrices, the peak of all that follows;
* towers: images a second of ViT-B-32 and ViT-L-14, each part by itself (decoding and resizing in worker
  processes, pixels and tower on the device), then all of it from files to vectors, and the slower part by
  name; the tower also as one program (`compile`), and the device's resizing;
* training: images a second and the share of time spent waiting, one step of TROHN-Img, 200 pairs and their
  200 hard negative pairs, in bf16;
* vqa: pairs a second at 1 and at 10 captions to an image (`benchmarks/pairs.py`).
"""

import argparse
import logging
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import pairs
from counterfoil.benchmarks.records import Caption, FileSource, Image, PixelSource
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.errors import CounterfoilError
from counterfoil.models import clip_fast, registry
from counterfoil.models.base import Options
from counterfoil.models.images import ImageRoute, prepared
from counterfoil.models.networks import TOLERANCE, CompiledTower, network_model
from counterfoil.train.loop import fit
from counterfoil.train.recipes.published import NegativePairs
from counterfoil.train.saving import Saving
from engine import photographs

PARTS = ("products", "towers", "training", "vqa")
NO_GPU = (
    "no GPU here: nothing is measured (python benchmarks/gpu.py --device cpu --small runs the same code on "
    "the processor)"
)
#: A model small enough for a processor, in open_clip's own words.
SMALL = "counterfoil-small"
SMALL_CONFIG = {
    "embed_dim": 64,
    "vision_cfg": {"image_size": 64, "patch_size": 16, "width": 64, "layers": 2, "head_width": 32},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 64, "heads": 2, "layers": 2},
}
NAMES = {torch.float16: "fp16", torch.bfloat16: "bf16", torch.float32: "fp32"}


@dataclass(frozen=True)
class Size:
    """How much is measured."""

    architectures: tuple[str, ...]
    batch: int
    files: int
    side: int
    #: Batch and steps of training.
    training: tuple[int, int]
    vqa: str
    #: Times that a piece of work is repeated; the median counts.
    rounds: int


WHOLE = Size(("ViT-B-32", "ViT-L-14"), 256, 4096, 8192, (200, 40), "large", 5)
LITTLE = Size((SMALL,), 4, 12, 256, (2, 3), "tiny", 2)


# -- clocks -----------------------------------------------------------------------------------------------


def waited(device: torch.device) -> None:
    """Return when the device has done all that it was told to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def seconds(work: Callable[[], object], device: torch.device, rounds: int) -> float:
    """The median time of some work, after one round that warms up."""
    times = []
    for _ in range(rounds + 1):
        waited(device)
        since = time.perf_counter()
        work()
        waited(device)
        times.append(time.perf_counter() - since)
    return float(np.median(times[1:]))


def product_rate(device: torch.device, dtype: torch.dtype, side: int, rounds: int) -> float:
    """Floating-point operations a second in products of square matrices."""
    left, right = (torch.randn(side, side, device=device).to(dtype) for _ in range(2))
    out = torch.empty(side, side, device=device, dtype=dtype)

    def work() -> None:
        for _ in range(10):
            torch.mm(left, right, out=out)

    return 10 * 2 * side**3 / seconds(work, device, rounds)


def operations(work: Callable[[], object]) -> int:
    """Floating-point operations of products, convolutions and attention in some work."""
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        work()
    return int(counter.get_total_flops())


# -- products ---------------------------------------------------------------------------------------------


def products(device: torch.device, size: Size) -> dict[str, float]:
    """Print and return the rates of products by precision."""
    kinds = {"bf16": torch.bfloat16, "fp32": torch.float32}
    if device.type == "cuda":
        kinds = {"fp16": torch.float16, **kinds}
    found = {name: product_rate(device, dtype, size.side, size.rounds) for name, dtype in kinds.items()}
    rates = ", ".join(f"{name} {rate / 1e12:.4g} TFLOP/s" for name, rate in found.items())
    print(f"products of {size.side} x {size.side}: {rates}", flush=True)
    return found


# -- towers -----------------------------------------------------------------------------------------------


def bound(rates: dict[str, float]) -> str:
    """The slowest part, which bounds the whole.

    >>> bound({"decode": 900.0, "tower": 3000.0})
    'decode'
    """
    return min(rates, key=lambda name: rates[name])


def towers(device: torch.device, size: Size, peaks: dict[str, float], folder: Path, workers: int) -> None:
    """Print the rates of each architecture, part by part."""
    files = photographs(None, min(size.files, 256), folder)
    images = [Image(str(at), FileSource(files[at % len(files)])) for at in range(size.files)]
    batches = [images[at : at + size.batch] for at in range(0, len(images), size.batch)]
    for architecture in size.architectures:
        made = registry.backbone(f"open-clip:{architecture}")
        reference = made.preparation
        for route in (ImageRoute(), ImageRoute(resize="device")):
            backbone = replace(
                made, route=route, preparation=route.preparation(reference, where=architecture)
            )
            options = Options(device=device.type, precision="bf16")
            model = network_model(backbone, options, where=architecture)
            rates = parts(model, batches, device, size, workers)
            computed = NAMES[next(backbone.network.parameters()).dtype]
            name = f"{architecture} {computed}" + "".join(
                f" {key}={value}" for key, value in route.facts().items()
            )
            shown = ", ".join(f"{part} {rate:.0f}" for part, rate in rates.items())
            slowest = bound({part: rates[part] for part in ("decode", "tower")})
            print(f"{name}: images/s {shown}; bound by {slowest}", flush=True)
        tower_alone(backbone.network, architecture, device, size, peaks)


def parts(
    model: Any, batches: Sequence[Sequence[Image]], device: torch.device, size: Size, workers: int
) -> dict[str, float]:
    """Images a second of each part alone, of all of them together, and of the towers fed from memory."""
    count = sum(map(len, batches))
    since = time.perf_counter()
    arrays = list(prepared(batches, model.preparation, workers=workers))
    decode = count / (time.perf_counter() - since)
    few = arrays[: min(len(arrays), 8)]
    held = sum(map(len, few))
    with torch.inference_mode():
        tower = held / seconds(lambda: [model.towers.images(batch) for batch in few], device, size.rounds)
    since = time.perf_counter()
    for _ in model.embed_images(batches, workers=workers):
        pass
    whole = count / (time.perf_counter() - since)
    return {"decode": decode, "tower": tower, "files to vectors": whole}


def tower_alone(
    network: Any, architecture: str, device: torch.device, size: Size, peaks: dict[str, float]
) -> None:
    """Print images a second and the share of the peak of the library's tower, ours and compiled ones."""
    tower = clip_fast.image_tower(network.model)
    assert tower is not None
    dtype = next(network.parameters()).dtype
    side = network.model.visual.image_size[0]
    pixels = torch.randn(size.batch, 3, side, side, device=device).to(dtype)
    ways: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "library": network.model.encode_image,
        "fast": tower,
    }
    ways["compile=yes"] = CompiledTower(tower, tolerance=TOLERANCE["bf16"], where=architecture)
    with torch.inference_mode():
        each = operations(lambda: network.model.encode_image(pixels[:1]))
        for name, way in ways.items():
            try:
                rate = size.batch / seconds(lambda way=way: way(pixels), device, size.rounds)
            except CounterfoilError as error:
                print(f"{architecture} {name}: left out: {error}", flush=True)
                continue
            share = rate * each / peaks[NAMES[dtype]]
            print(
                f"{architecture} tower, {name}, {NAMES[dtype]}: {rate:.0f} images/s at batch {size.batch}, "
                f"{each / 1e9:.3g} GFLOP an image, {share:.0%} of the rate of products",
                flush=True,
            )


# -- training ---------------------------------------------------------------------------------------------


def training_rows(n: int) -> TrainingSet:
    """Pairs with hard negative pairs: pictures of noise, 320 x 240, and captions of about COCO's length."""
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 256, (min(2 * n, 400), 240, 320, 3)).astype(np.uint8)
    words = ("a", "red", "green", "small", "dog", "cat", "on", "under", "the", "table", "with", "people")
    places = np.arange(n)
    return TrainingSet(
        "noise",
        tuple(Image(str(i), PixelSource(pictures[i % len(pictures)])) for i in range(2 * n)),
        tuple(Caption(str(i), " ".join(rng.choice(words, rng.integers(8, 14)))) for i in range(2 * n)),
        {"image": places, "caption": places, "negative_image": n + places, "negative_caption": n + places},
    )


def training(device: torch.device, size: Size, workers: int) -> None:
    """Print images a second of steps of TROHN-Img, and the share of the time spent waiting for data."""
    batch, steps = size.training
    data = training_rows(4 * batch)
    recipe = NegativePairs(
        batch_size=batch, steps=steps, select="last", precision="bf16", max_logit_scale=100.0, warmup=2
    )
    for number in (2, steps):  # the first warms up
        torch.manual_seed(0)
        made = registry.backbone(f"open-clip:{size.architectures[0]}")
        found = fit(
            made,
            replace(recipe, steps=number),
            data,
            device=device.type,
            workers=workers,
            saving=Saving(journal_every=10**9),
        )
    print(
        f"trohn-img, {size.architectures[0]} bf16, {batch} pairs and {batch} negative pairs: "
        f"{2 * found.rows_per_second:.0f} images/s, {batch / found.rows_per_second * 1e3:.0f} ms a "
        f"step, {found.waiting:.1%} waiting for data",
        flush=True,
    )


# -- pairs ------------------------------------------------------------------------------------------------


def vqa(device: torch.device, size: Size, folder: Path) -> None:
    """Print the table of `benchmarks/pairs.py` for a question about each caption."""
    options = argparse.Namespace(
        device="auto" if device.type == "cuda" else "cpu",
        images=32 if device.type == "cuda" else 1,
        captions=[1, 10],
        plain=8 if device.type == "cuda" else 1,
        rounds=size.rounds,
        only="vqa",
    )
    pairs.measure(options, size.vqa, folder)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--device", choices=("auto", "cuda", "cpu"), default="auto")
    parser.add_argument("--small", action="store_true", help="small models and few items")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--workers", type=int, default=None, help="default: one per core, at most 16")
    asked = parser.parse_args(arguments)
    there = torch.cuda.is_available()
    if asked.device == "cuda" and not there:
        sys.exit("no GPU here")
    if asked.device == "auto" and not there:
        print(NO_GPU)
        return
    device = torch.device("cpu" if asked.device == "cpu" else "cuda")
    size = LITTLE if asked.small else WHOLE
    workers = min(16, os.cpu_count() or 1) if asked.workers is None else asked.workers
    logging.disable(logging.WARNING)  # open_clip warns that random weights are random
    warnings.simplefilter("ignore")  # PaliGemma's processor and NumPy
    name = torch.cuda.get_device_name() if device.type == "cuda" else "the processor"
    print(f"{name}, torch {torch.__version__}, {torch.get_num_threads()} threads, {workers} workers")
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        if asked.small:
            add_small(folder)
        peaks = products(device, size)
        if "towers" in asked.only:
            towers(device, size, peaks, folder, workers)
        if "training" in asked.only:
            training(device, size, workers)
        if "vqa" in asked.only:
            vqa(device, size, folder)


def add_small(folder: Path) -> None:
    """Make the small model known to open_clip."""
    import json

    import open_clip

    place = folder / "architectures"
    place.mkdir()
    (place / f"{SMALL}.json").write_text(json.dumps(SMALL_CONFIG))
    open_clip.add_model_config(place)


if __name__ == "__main__":
    main()
