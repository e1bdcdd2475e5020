"""How fast cross-encoders score pairs, beside the library's documented call for one pair at a time.

    python benchmarks/cross_encoders.py [--size tiny mid] [--captions 1 2 10] [--images 4] [--rounds 3]

BLIP's matching head with random weights: "tiny" has two layers of 32 numbers, "mid" is BLIP-base's
architecture (384 pixels, 768 numbers) with three layers in each tower. Both sides decode, prepare and
tokenise within the time that is counted and take turns in one run; the fastest round of each counts. The
scores are compared too.
"""

import argparse
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import torch
import transformers

from counterfoil.data.records import Caption, Image, PixelSource
from counterfoil.scorers import itm
from counterfoil.scorers.base import Options

WORDS = (
    *("a", "red", "green", "large", "small", "dog", "cat", "on", "under", "the", "table", "street"),
    *("with", "people", "two", "old", "tree", "near", "water"),
)
SIZES = {
    "tiny": {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2},
    "mid": {"hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 3, "num_attention_heads": 12},
}


def save(folder: Path, size: str) -> None:
    """A BLIP of random weights with its processor."""
    layers, side = SIZES[size], 32 if size == "tiny" else 384
    marks = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    config = transformers.BlipConfig(
        text_config={
            **layers,
            "vocab_size": len(marks) + len(WORDS) + 2,
            "bos_token_id": len(marks) + len(WORDS),
            "sep_token_id": 3,
            "encoder_hidden_size": layers["hidden_size"],
        },
        vision_config={**layers, "image_size": side, "patch_size": 8 if size == "tiny" else 16},
        image_text_hidden_size=32,
    )
    torch.manual_seed(0)
    transformers.BlipForImageTextRetrieval(config).save_pretrained(folder)
    transformers.BlipImageProcessor(size={"height": side, "width": side}).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join((*marks, *WORDS)) + "\n")
    transformers.BertTokenizer(str(folder / "vocab.txt")).save_pretrained(folder)


def pairs_of(images: int, captions: int) -> list[tuple[Image, Caption]]:
    """Photographs of noise, 320 x 240, each with captions of about COCO's length."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(images):
        image = Image(str(i), PixelSource(rng.integers(0, 256, (240, 320, 3)).astype(np.uint8)))
        texts = [" ".join(rng.choice(WORDS, rng.integers(8, 14))) for _ in range(captions)]
        found += [(image, Caption(f"{i} {k}", text)) for k, text in enumerate(texts)]
    return found


def one_at_a_time(model: Any, processor: Any, pairs: list[tuple[Image, Caption]]) -> np.ndarray:
    """The documented call for each pair."""
    found = []
    with torch.inference_mode():
        for image, caption in pairs:
            inputs = processor(images=image.decode(), text=caption.text, return_tensors="pt")
            found.append(float(model(**inputs).itm_score.softmax(-1)[0, 1]))
    return np.array(found)


def main() -> None:
    """Print pairs per second and the ratio for each size and number of captions per image."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", nargs="+", default=list(SIZES), choices=list(SIZES))
    parser.add_argument("--captions", nargs="+", type=int, default=[1, 2, 10])
    parser.add_argument("--images", type=int, default=4)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--batch", type=int, default=32)
    args = parser.parse_args()
    transformers.logging.disable_progress_bar()
    for size in args.size:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            save(folder, size)
            scorer = itm.load(str(folder), Options(device="cpu"))
            model = transformers.BlipForImageTextRetrieval.from_pretrained(folder).eval()
            processor = transformers.BlipProcessor(
                transformers.AutoImageProcessor.from_pretrained(folder),
                transformers.AutoTokenizer.from_pretrained(folder),
            )
        for captions in args.captions:
            pairs = pairs_of(args.images, captions)
            batches = [pairs[at : at + args.batch] for at in range(0, len(pairs), args.batch)]
            seconds: dict[str, list[float]] = {"loop": [], "ours": []}
            for _ in range(args.rounds):
                start = perf_counter()
                expected = one_at_a_time(model, processor, pairs)
                seconds["loop"].append(perf_counter() - start)
                start = perf_counter()
                found = np.concatenate(list(scorer.score_pairs(batches)))
                seconds["ours"].append(perf_counter() - start)
            loop, ours = (min(seconds[side]) for side in ("loop", "ours"))
            print(
                f"BLIP {size}, {captions:2d} captions per image: one pair at a time {len(pairs) / loop:7.1f} "
                f"pairs/s, counterfoil {len(pairs) / ours:7.1f} pairs/s, {loop / ours:5.2f} times; "
                f"scores differ by {np.abs(found - expected).max():.0e}"
            )


if __name__ == "__main__":
    main()
