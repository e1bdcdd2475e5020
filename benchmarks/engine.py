"""How much faster the engine is than the official evaluation, on one machine in one run.

    python benchmarks/engine.py [--items 240] [--rounds 3] [--precision fp32 bf16] [--threads 1] [--data DIR]

The work is SugarCrepe's: about 4.8 questions to an image, the positive captions repeated as they are there.
With real data at hand (COUNTERFOIL_DATA, or ../shared/data) captions are SugarCrepe's own and photographs
those of coco_mini, else both are made up with the same repetition. The model is a ViT-B-32-quickgelu of
random weights, which costs what a trained one costs. Compared are

* the official loop: a row at a time, one image, two captions padded to 77 tokens, batches of one;
* the engine, from files to scores, at each precision;
* open_clip's own towers fed from memory: pictures decoded and captions tokenised beforehand, captions sorted
  by length and cut to the longest of their batch (in the same precision where the processor has it);
* our towers fed from memory in the same way: what decoding, the cache and the bookkeeping cost on top;
* the engine's second run, from its cache.

All of them take turns, round by round, and every figure is the median of the rounds: the machine's mood
changes all of them alike. Rates are given by the clock and by the processor's own time, which other programs
on the machine disturb less; with `--threads 1` the ratios hold still even where others compute at the same
time, since no thread waits for another. Decisions that differ from the official loop's are counted.
"""

import argparse
import json
import logging
import os
import random
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from numpy import ndarray

from counterfoil.benchmarks import Benchmark, Caption, Card, Choice, FileSource, Image
from counterfoil.engine.session import Session, run
from counterfoil.models.base import Options
from counterfoil.models.images import prepared
from processor import multiplies_bf16, precisions

ARCHITECTURE = "ViT-B-32-quickgelu"
BATCH = 32

#: SugarCrepe: 7,511 items on 1,560 images; 15,022 captions, 11,844 of them different.
ITEMS_PER_IMAGE = 7511 / 1560
WORDS = (
    *("a", "the", "man", "woman", "child", "dog", "cat", "horse", "bus", "train", "red", "blue", "small"),
    *("large", "old", "young", "sitting", "standing", "riding", "holding", "on", "under", "beside", "near"),
    *("table", "street", "field", "beach", "kitchen", "umbrella", "ball", "kite", "plate", "pizza", "with"),
)


@dataclass(frozen=True)
class Row:
    """One question: a photograph, its caption and a false one."""

    file: Path
    caption: str
    negative: str


# -- the work ---------------------------------------------------------------------------------------------


def data_folder(named: Path | None) -> Path | None:
    """The folder of real data, if there is one."""
    folder = named or Path(
        os.environ.get("COUNTERFOIL_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    )
    return folder if folder.is_dir() else None


def questions(data: Path | None, items: int) -> list[tuple[str, str, str]]:
    """(image, caption, negative caption) of about `items` questions: all those of some images."""
    files = sorted((data / "sugarcrepe").glob("*.json")) if data else []
    of_image: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for file in files:
        for item in json.loads(file.read_text(encoding="utf-8")).values():
            of_image[item["filename"]].append((item["caption"], item["negative_caption"]))
    if not of_image:
        of_image = made_up(items)
    names = sorted(of_image)
    random.Random(0).shuffle(names)
    rows: list[tuple[str, str, str]] = []
    for name in names:
        if len(rows) >= items:
            break
        rows += [(name, *pair) for pair in of_image[name]]
    return rows


def made_up(items: int) -> dict[str, list[tuple[str, str]]]:
    """Questions with SugarCrepe's repetition: of 9.6 captions to an image, 2 in 5 positives come again."""
    rng = random.Random(1)

    def sentence() -> str:
        return " ".join(rng.choice(WORDS) for _ in range(rng.choice((8, 9, 10, 11, 12, 13, 15)))).capitalize()

    of_image = {}
    for number in range(int(items / ITEMS_PER_IMAGE) + 2):
        count = rng.choice((3, 4, 5, 5, 6, 6))
        captions = [sentence() for _ in range(max(1, round(count * 0.58)))]
        of_image[f"{number:012}.jpg"] = [(captions[i % len(captions)], sentence()) for i in range(count)]
    return of_image


def photographs(data: Path | None, count: int, folder: Path) -> list[Path]:
    """`count` JPEG files of about 500 x 375: real ones first, then made ones as costly to decode."""
    found = sorted((data / "coco_mini" / "images").rglob("*.jpg"))[:count] if data else []
    rng = np.random.default_rng(0)
    for number in range(len(found), count):
        coarse = rng.integers(0, 256, (12, 16, 3), dtype=np.uint8)
        smooth = np.asarray(PIL.Image.fromarray(coarse).resize((500, 375), PIL.Image.Resampling.BICUBIC))
        noisy = np.clip(smooth + rng.normal(0, 12, smooth.shape), 0, 255).astype(np.uint8)
        path = folder / f"made_{number}.jpg"
        PIL.Image.fromarray(noisy).save(path, quality=90)
        found.append(path)
    return found


def benchmark_of(rows: Sequence[Row]) -> Benchmark:
    """The rows as the engine takes them."""
    files = list(dict.fromkeys(row.file for row in rows))
    position = {file: i for i, file in enumerate(files)}
    texts = [text for row in rows for text in (row.caption, row.negative)]
    return Benchmark(
        Card(name="speed", title="Speed", form="choice"),
        tuple(Image(str(file), FileSource(file)) for file in files),
        tuple(Caption(str(i), text) for i, text in enumerate(texts)),
        Choice(
            tuple(str(i) for i in range(len(rows))),
            query=np.asarray([position[row.file] for row in rows], dtype=np.int64),
            candidates=np.arange(2 * len(rows), dtype=np.int64).reshape(-1, 2),
        ),
    )


def checkpoint(folder: Path) -> Path:
    """A randomly initialised model on disk."""
    import open_clip
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    model = open_clip.create_model(ARCHITECTURE)
    path = folder / "random.safetensors"
    save_file({name: value.contiguous() for name, value in model.state_dict().items()}, path)
    return path


# -- the competitors --------------------------------------------------------------------------------------


def official_model(path: Path) -> tuple[Any, Any, Any]:
    """Model, transform and tokenizer as open_clip gives them."""
    import open_clip
    from safetensors.torch import load_file

    model, _, transform = open_clip.create_model_and_transforms(ARCHITECTURE)
    model.load_state_dict(load_file(path))
    return model.eval(), transform, open_clip.get_tokenizer(ARCHITECTURE)


def official_loop(rows: Sequence[Row], model: Any, transform: Any, tokenizer: Any) -> ndarray:
    """A row at a time, as SugarCrepe's evaluation works; (rows, 2) cosines."""
    import torch

    scores = []
    for row in rows:
        with torch.no_grad():
            with PIL.Image.open(row.file) as picture:
                pixels = transform(picture.convert("RGB"))
            image = model.encode_image(pixels.unsqueeze(0))
            positive = model.encode_text(tokenizer([row.caption]))
            negative = model.encode_text(tokenizer([row.negative]))
            image = image / image.norm(dim=-1, keepdim=True)
            scores.append(
                [
                    float((text / text.norm(dim=-1, keepdim=True) @ image.T)[0, 0])
                    for text in (positive, negative)
                ]
            )
    return np.asarray(scores)


def memory_work(model: Any, benchmark: Benchmark) -> Callable[[], None]:
    """The model's towers over the same distinct items, with everything before them already done."""
    images = list(benchmark.images)
    texts = list({caption.text: caption for caption in benchmark.captions}.values())
    lengths = model.lengths(texts)
    texts = [texts[i] for i in sorted(range(len(texts)), key=lambda i: (lengths[i], texts[i].text))]
    pictures = [images[at : at + BATCH] for at in range(0, len(images), BATCH)]
    arrays = list(prepared(pictures, model.preparation, workers=0))
    batches = [[caption.text for caption in texts[at : at + BATCH]] for at in range(0, len(texts), BATCH)]

    def work() -> None:
        import torch

        with torch.inference_mode():
            for array in arrays:
                model.towers.images(array)
            for batch in batches:
                model.towers.texts(batch)

    return work


def bare_work(official: tuple[Any, Any, Any], benchmark: Benchmark, precision: str) -> Callable[[], None]:
    """open_clip's own towers over the same distinct items, with everything before them already done."""
    import copy

    import torch

    model, transform, tokenizer = official
    dtype = torch.bfloat16 if precision == "bf16" and multiplies_bf16() else torch.float32
    model = copy.deepcopy(model).to(dtype)
    pixels = torch.stack([transform(image.decode()) for image in benchmark.images]).to(dtype)
    texts = list(dict.fromkeys(str(caption.text) for caption in benchmark.captions))
    ids = tokenizer(texts)
    ends = ids.argmax(dim=-1) + 1
    order = ends.argsort()
    batches = [ids[part][:, : int(ends[part].max())] for part in order.split(BATCH)]

    def encode_text(tokens: Any) -> Any:
        # `model.encode_text` adds all 77 positions; this is the same for fewer, exact under the causal mask.
        length = tokens.shape[1]
        x = model.token_embedding(tokens) + model.positional_embedding[:length]
        x = model.ln_final(model.transformer(x, attn_mask=model.attn_mask[:length, :length]))
        return x[torch.arange(len(x)), tokens.argmax(dim=-1)] @ model.text_projection

    def work() -> None:
        with torch.inference_mode():
            for batch in pixels.split(BATCH):
                model.encode_image(batch)
            for tokens in batches:
                encode_text(tokens)

    return work


def timed(work: Callable[[], Any]) -> tuple[ndarray, Any]:
    """Seconds by the clock and of the processor, and what came out."""
    clock, processor = time.perf_counter(), time.process_time()
    result = work()
    return np.array([time.perf_counter() - clock, time.process_time() - processor]), result


# -- the comparison ---------------------------------------------------------------------------------------


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--items", type=int, default=240, help="questions, about")
    parser.add_argument("--rows", type=int, default=40, help="rows of them for the official loop")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--precision", nargs="+", choices=("fp32", "bf16"))
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="of torch; 0 leaves its own choice")
    parser.add_argument("--data", type=Path, default=None)
    options = parser.parse_args()
    options.precision = precisions(options.precision)
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder))


def measure(options: argparse.Namespace, folder: Path) -> None:
    """All competitors in turns; rates are questions per second."""
    import torch

    from counterfoil.models.open_clip import load

    logging.disable(logging.WARNING)  # open_clip warns that random weights are random
    if options.threads:
        torch.set_num_threads(options.threads)
    data = data_folder(options.data)
    asked = questions(data, options.items)
    names = list(dict.fromkeys(image for image, _, _ in asked))
    file_of = dict(zip(names, photographs(data, len(names), folder), strict=True))
    rows = [Row(file_of[image], caption, negative) for image, caption, negative in asked]
    sample = sorted(random.Random(2).sample(range(len(rows)), min(options.rows, len(rows))))
    work = benchmark_of(rows)
    distinct = len({caption.text for caption in work.captions})
    print(
        f"{len(rows)} questions on {len(names)} images ({len(rows) / len(names):.1f} to an image), "
        f"{distinct} distinct captions of {2 * len(rows)}; {torch.get_num_threads()} threads; "
        f"bf16 instructions: {'yes' if multiplies_bf16() else 'no'}"
    )

    if "bf16" in options.precision and not multiplies_bf16():
        print("this processor computes bf16 by way of fp32, so that figure says nothing about others")

    path = checkpoint(folder)
    official = official_model(path)
    models = {
        precision: load(f"{ARCHITECTURE}/{path}", Options(device="cpu", precision=precision))
        for precision in options.precision
    }
    ours_fed = {precision: memory_work(model, work) for precision, model in models.items()}
    theirs_fed = {precision: bare_work(official, work, precision) for precision in models}
    rates: dict[str, list[ndarray]] = defaultdict(list)
    decisions: dict[str, int] = {}
    margins: dict[str, float] = {}
    for number in range(options.rounds + 1):
        kept = number > 0  # the first round warms up
        seconds, expected = timed(lambda: official_loop([rows[i] for i in sample], *official))
        if kept:
            rates["official loop"].append(len(sample) / seconds)
        for precision, model in models.items():
            cache = folder / f"cache-{precision}-{number}"

            def ours(model: Any = model, cache: Path = cache) -> Any:
                return run(work, model, session=Session(cache, batch_size=BATCH, workers=options.workers))

            cold, answers = timed(ours)
            bare, _ = timed(theirs_fed[precision])
            memory, _ = timed(ours_fed[precision])
            warm, again = timed(ours)
            assert again.values.tobytes() == answers.values.tobytes()
            if kept:
                rates[f"engine, {precision}"].append(len(rows) / cold)
                rates[f"bare towers, {precision}"].append(len(rows) / bare)
                rates[f"our towers, {precision}"].append(len(rows) / memory)
                rates[f"engine again, {precision}"].append(len(rows) / warm)
            found = answers.values[sample]
            decisions[precision] = int(
                ((found[:, 0] > found[:, 1]) != (expected[:, 0] > expected[:, 1])).sum()
            )
            margins[precision] = float(np.abs(found - expected).max())
    report(rates, decisions, margins, len(sample))


def report(
    rates: dict[str, list[ndarray]], decisions: dict[str, int], margins: dict[str, float], rows: int
) -> None:
    """The table, and each criterion with what it came to."""

    def ratio(left: str, right: str) -> tuple[float, float]:
        # Within a round both saw the same machine.
        clock, processor = np.median(np.asarray(rates[left]) / np.asarray(rates[right]), axis=0)
        return float(clock), float(processor)

    print(f"\n{'questions per second':28}{'clock':>10}{'official':>10}{'processor':>12}{'official':>10}")
    for name, values in rates.items():
        (clock, processor), times = np.median(values, axis=0), ratio(name, "official loop")
        print(f"{name:28}{clock:10.2f}{times[0]:9.1f}x{processor:12.2f}{times[1]:9.1f}x")
    print("\nby the clock | by the processor's time")
    for precision, wanted in (("fp32", 8), ("bf16", 20)):
        if precision not in decisions:
            continue
        engine, again = f"engine, {precision}", f"engine again, {precision}"
        faster, cached = ratio(engine, "official loop"), ratio(again, engine)
        bare, share = ratio(engine, f"bare towers, {precision}"), ratio(engine, f"our towers, {precision}")
        print(f"{precision}: {faster[0]:.1f} | {faster[1]:.1f} times the official loop (wanted {wanted})")
        print(f"      {bare[0]:.0%} | {bare[1]:.0%} of the rate of the bare towers from memory (wanted 90 %)")
        print(f"      {share[0]:.0%} | {share[1]:.0%} of the rate of our own towers fed from memory")
        print(f"      {cached[0]:.0f} | {cached[1]:.0f} times as fast from cache (wanted 50)")
        print(
            f"      {decisions[precision]} of {rows} decisions differ from the official loop's; "
            f"cosines differ by at most {margins[precision]:.1e}"
        )


if __name__ == "__main__":
    main()
