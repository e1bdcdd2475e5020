"""How much faster models of pairs are than a plain loop over pairs, on one machine in one run.

    python benchmarks/pairs.py [--size tiny mid] [--images 3] [--rounds 2] [--captions 1 2 10] [--device auto]

The plain loop is what the documentation of transformers shows: for each pair the processor prepares picture
and text, and one forward pass computes logits of the positions that count. Models are of random weights and
real classes, which cost what trained ones cost:

* tiny: 2 layers of width 32, 4 to 16 positions for a picture;
* mid: 4 layers of width 256, 256 positions for a picture;
* large (for a GPU): 24 layers of width 2048, 256 positions, bf16.

Both compute every score; the largest difference is printed. On a GPU pairs per second come with the share of
the rate at which it multiplies large matrices.

Another kind of model joins by a row of `CASES` and its plain scoring of one pair in `plain`.
"""

import argparse
import logging
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image, PixelSource
from counterfoil.models.base import Options

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

#: Sizes of models; the picture's side is set per family so that it takes 256 positions.
SIZES: dict[str, dict[str, int]] = {
    "tiny": {},
    "mid": {"width": 256, "layers": 4, "heads": 4, "vision_width": 192, "vision_layers": 4},
    "large": {"width": 2048, "layers": 24, "heads": 16, "vision_width": 1024, "vision_layers": 24},
}
#: Side and patch of a picture of 256 positions: Qwen-VL merges four patches into one.
PLACES = {"qwen2-vl": (448, 14), "paligemma": (224, 14), "blip": (224, 14)}
#: Model and family, and the least ratio wanted at ten captions a picture (0 asks for none).
CASES = (
    ("vqa", "qwen2-vl", 3.0),
    ("likelihood", "qwen2-vl", 3.0),
    ("likelihood", "paligemma", 3.0),
    # Its question attends to itself both ways: only the vision tower can be shared.
    ("vqa", "paligemma", 0.0),
    ("likelihood", "blip", 3.0),
    # The matching head: patches once per picture, and their keys and values too.
    ("itm", "blip", 4.0),
)
QUESTION = 'Does this figure show "{}"? Please answer Yes or No.'
INSTRUCTION = "Describe this image in one sentence."
WORDS = (
    "a red cat",
    "two dogs",
    "a man and a woman",
    "a white horse",
    "the blue house",
    "a child with a ball",
)
PLACE = (
    "on the mat",
    "behind the chair",
    "left of the table",
    "on the grass",
    "with a dog",
    "in front of people",
)
BATCH = 32


# -- the plain loop ---------------------------------------------------------------------------------------


def plain(kind: str, family: str, folder: Path, device: Any, dtype: Any) -> Callable[[Any, str], float]:
    """A function that scores one pair as the library's documentation does."""
    import torch
    import transformers

    if kind == "itm":
        return plain_matching(folder, device, dtype)
    model = transformers.AutoModelForImageTextToText.from_pretrained(folder).eval().to(device, dtype)
    processor = transformers.AutoProcessor.from_pretrained(folder)
    tokenizer = processor.tokenizer
    yes = [tokenizer.convert_tokens_to_ids(piece) for piece in ("Yes", "ĠYes", "yes", "Ġyes")]
    as_tensors = {"tokenize": True, "return_dict": True, "return_tensors": "pt"}

    def asked(picture: Any, text: str, said: str = "") -> Any:
        content = [{"type": "image", "image": picture}, {"type": "text", "text": text}]
        turns = [{"role": "user", "content": content}]
        if said:
            turns.append({"role": "assistant", "content": [{"type": "text", "text": said}]})
        return processor.apply_chat_template(turns, add_generation_prompt=not said, **as_tensors)

    def logs(inputs: Any, kept: int) -> Any:
        inputs = inputs.to(device, dtype)
        inputs.pop("labels", None)
        with torch.inference_mode():
            logits = model(**inputs, logits_to_keep=kept).logits[0, -kept:]
        return logits.float().log_softmax(-1).cpu()

    def p_yes(picture: Any, text: str) -> float:
        question = QUESTION.replace("{}", text)
        if family == "paligemma":
            inputs = processor(text=f"<image>{question}", images=picture, return_tensors="pt")
        else:
            inputs = asked(picture, question)
        return float(logs(inputs, 1)[0, yes].exp().sum())

    def likelihood(picture: Any, text: str) -> float:
        if family == "paligemma":
            inputs = processor(text="<image>caption en", suffix=text, images=picture, return_tensors="pt")
            start, stop = int((inputs["labels"][0] != -100).nonzero()[0]), inputs["input_ids"].shape[1]
        elif family == "blip":
            inputs = processor(images=picture, text=text, return_tensors="pt")
            inputs["input_ids"][0, 0] = model.config.text_config.bos_token_id
            start, stop = 1, inputs["input_ids"].shape[1]
        else:
            start = asked(picture, INSTRUCTION)["input_ids"].shape[1]
            inputs = asked(picture, INSTRUCTION, text)
            # The turn ends with its mark and a line break.
            stop = inputs["input_ids"].shape[1] - 1
        ids = inputs["input_ids"][0]
        found = logs(inputs, len(ids) - start + 1)
        return float(sum(found[at, ids[start + at]] for at in range(stop - start)))

    return p_yes if kind == "vqa" else likelihood


def plain_matching(folder: Path, device: Any, dtype: Any) -> Callable[[Any, str], float]:
    """The same of BLIP's matching head."""
    import torch
    import transformers

    model = transformers.BlipForImageTextRetrieval.from_pretrained(folder).eval().to(device, dtype)
    processor = transformers.BlipProcessor(
        transformers.AutoImageProcessor.from_pretrained(folder),
        transformers.AutoTokenizer.from_pretrained(folder),
    )

    def probability(picture: Any, text: str) -> float:
        inputs = processor(images=picture, text=text, return_tensors="pt").to(device, dtype)
        with torch.inference_mode():
            return float(model(**inputs).itm_score.float().softmax(-1)[0, 1])

    return probability


# -- the comparison ---------------------------------------------------------------------------------------


def pairs_of(images: int, captions: int, shape: tuple[int, int]) -> list[tuple[Image, Caption]]:
    """Pictures of noise, each with so many captions of 4 to 9 words."""
    rng = np.random.default_rng(0)
    texts = [f"{what} {where}" for what in WORDS for where in PLACE]
    return [
        (image, Caption(text, text))
        for image in (
            Image(str(number), PixelSource(rng.integers(0, 256, (*shape, 3)).astype(np.uint8)))
            for number in range(images)
        )
        for text in rng.choice(texts, captions, replace=False)
    ]


def loop(one: Callable[[Any, str], float], pairs: Sequence[tuple[Image, Caption]]) -> list[float]:
    """The scores of pairs, one after the other."""
    return [one(image.decode(), caption.text or "") for image, caption in pairs]


def stream(model: Any, batches: Sequence[Sequence[tuple[Image, Caption]]]) -> ndarray:
    """The same by a model of pairs."""
    return np.concatenate(list(model.score_pairs(batches)))


def timed(work: Callable[[], Sequence[float]]) -> tuple[float, ndarray]:
    """Seconds, and the scores."""
    start = time.perf_counter()
    found = np.asarray(work())
    return time.perf_counter() - start, found


def peak(device: Any, dtype: Any) -> float:
    """Floating-point operations a second in products of large matrices."""
    import torch

    side = 8192
    left = torch.randn(side, side, device=device, dtype=dtype)
    for _ in range(3):
        left @ left
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        left @ left
    torch.cuda.synchronize()
    return 20 * 2 * side**3 / (time.perf_counter() - start)


def measure(options: argparse.Namespace, size: str, folder: Path) -> None:
    """A table of one size of models."""
    import torch

    import tiny_generative
    import tiny_matchers
    from counterfoil.models import itm
    from counterfoil.models.generative import likelihood, vqa

    device = torch.device("cuda" if options.device == "auto" and torch.cuda.is_available() else "cpu")
    precision = "bf16" if size == "large" else "fp32"
    dtype = torch.bfloat16 if size == "large" else torch.float32
    most = peak(device, dtype) if device.type == "cuda" else 0.0
    print(
        f"\n{size}: {options.images} pictures, {device}, {precision}, {torch.get_num_threads()} threads"
        f"{f', {most / 1e12:.0f} TFLOP/s in products of matrices' if most else ''}"
    )
    print(f"{'model':24}{'captions':>9}{'plain/s':>10}{'ours/s':>10}{'ratio':>8}{'difference':>12}  computed")
    for kind, family, wanted in CASES:
        if options.only not in ("", kind):
            continue
        side, patch = (32, 8) if size == "tiny" else PLACES[family]
        place = folder / size / (f"itm-{family}" if kind == "itm" else family)
        if not place.exists():
            save = tiny_matchers.save if kind == "itm" else tiny_generative.save
            save(family, place, side=side, patch=patch, **SIZES[size])
        load = {"vqa": vqa.load, "likelihood": likelihood.load, "itm": itm.load}[kind]
        model = load(str(place), Options(device=device.type, precision=precision))
        one = plain(kind, family, place, device, dtype)
        for captions in options.captions:
            pairs = pairs_of(options.images, captions, (side, side))
            batches = [pairs[at : at + BATCH] for at in range(0, len(pairs), BATCH)]
            shown = pairs[: max(captions, options.plain)]
            rates, apart = [], 0.0
            work = partial(loop, one, shown), partial(stream, model, batches)
            for number in range(options.rounds + 1):
                (slow, expected), (fast, found) = map(timed, work)
                apart = max(apart, float(np.abs(found[: len(shown)] - expected).max()))
                if number:  # the first round warms up
                    rates.append((len(shown) / slow, len(pairs) / fast))
            (before, after), ratio = np.median(rates, axis=0), np.median([b / a for a, b in rates])
            note = model.provenance.get("computed", "picture once")
            if captions == 10 and wanted and size != "tiny":
                note += f" (wanted {wanted:g} times)"
            if most:
                # Two operations for each weight of the language model and position that the plain loop reads.
                model = model.matcher.model.text_encoder if kind == "itm" else model.decoder.model
                weights = sum(each.numel() for each in model.parameters())
                note += f"; {after * 2 * weights * 280 / most:.0%} of the peak, were every position read"
            row = f"{f'{kind} {family}':24}{captions:>9}{before:>10.2f}{after:>10.2f}"
            print(f"{row}{ratio:>7.1f}x{apart:>12.1e}  {note}", flush=True)


def main() -> None:
    """Measure and print a table per size."""
    import warnings

    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", nargs="+", choices=tuple(SIZES), default=["tiny", "mid"])
    parser.add_argument("--images", type=int, default=3)
    parser.add_argument("--captions", type=int, nargs="+", default=[1, 2, 10])
    parser.add_argument("--plain", type=int, default=8, help="pairs that the plain loop scores, at least")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--device", choices=("auto", "cpu"), default="auto")
    parser.add_argument("--only", default="", help="a kind of model, such as itm")
    options = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")  # PaliGemma's processor and NumPy
    with tempfile.TemporaryDirectory() as folder:
        for size in options.size:
            measure(options, size, Path(folder))


if __name__ == "__main__":
    main()
