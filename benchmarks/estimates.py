"""How near `counterfoil estimate` comes: predicted against measured seconds of three commands at three sizes.

    python benchmarks/estimates.py [--small] [--only build] [--rounds 3] [--workers 0]

The commands are `evaluate` of an encoder on quads, `evaluate` of the same on a gallery, and `build bivlc`,
all of the drawn world; the encoder is a CLIP of transformers with random weights. An estimate and the command
itself are processes of their own that take turns, and every number is the median of the rounds: a machine
whose load changes between the two shows in the ratio, so the load and the spread of the measured seconds
stand beside it. `--small` runs the smallest sizes once, to see that it works.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

SIZES = {"quads": (100, 300, 1000), "gallery": (100, 300, 1000), "build": (100, 300, 1000)}
SMALL = {"quads": (20,), "gallery": (20,), "build": (10,)}
TITLES = {"quads": "evaluate, quads", "gallery": "evaluate, gallery", "build": "build bivlc"}


def save_encoder(folder: Path, *, small: bool) -> None:
    """A CLIP of random weights, with a tokenizer of letters; `small` for one that costs nothing."""
    import torch
    import transformers
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers, processors

    torch.manual_seed(0)
    width, layers, side = (32, 2, 32) if small else (384, 6, 224)
    shape = {"num_hidden_layers": layers, "hidden_size": width, "intermediate_size": 4 * width}
    letters = ["<pad>", "<s>", "</s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz "]
    backend = Tokenizer(models.WordLevel({each: n for n, each in enumerate(letters)}, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Split(Regex("."), behavior="isolated")
    backend.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", special_tokens=[("<s>", 1), ("</s>", 2)]
    )
    marks = {"pad_token": "<pad>", "bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=backend, model_max_length=77, **marks
    ).save_pretrained(folder)
    config = transformers.CLIPConfig(
        text_config={
            **shape,
            "num_attention_heads": width // 32,
            "vocab_size": len(letters),
            "max_position_embeddings": 77,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "pad_token_id": 0,
        },
        vision_config={
            **shape,
            "num_attention_heads": width // 32,
            "image_size": side,
            "patch_size": side // 7 if side > 32 else 8,
        },
        projection_dim=64,
    )
    transformers.CLIPModel(config).save_pretrained(folder)
    transformers.CLIPImageProcessor(size={"shortest_edge": side}, crop_size=side).save_pretrained(folder)


def run(words: Sequence[object]) -> tuple[float, str]:
    """Seconds of a command as a process of its own, and what it prints."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-m", "counterfoil", *map(str, words)],
        capture_output=True,
        text=True,
        env=os.environ | {"HF_HUB_OFFLINE": "1"},
    )
    seconds = time.perf_counter() - began
    if done.returncode:
        sys.exit(f"counterfoil {' '.join(map(str, words))}: {done.stderr}")
    return seconds, done.stdout


def words_of(what: str, size: int, place: Path, workers: int) -> list[object]:
    """The command of a load at a size."""
    end = ["--workers", workers]
    if what == "build":
        return ["build", "bivlc", "--n", size, *end]
    if what == "quads":
        return ["evaluate", f"hf:{place / 'clip'}", "world-quads", "--limit", size, "--device", "cpu", *end]
    folder = place / f"gallery-{size}"
    if not folder.exists():
        run(["world", "build", "gallery", "--n", size, "--out", folder])
    return ["evaluate", f"hf:{place / 'clip'}", folder, "--device", "cpu", *end]


def turn(words: Sequence[object], place: Path, number: int) -> tuple[float, float]:
    """Predicted and measured seconds of one command, which finds no finished work."""
    fresh = ["--cache", place / f"cache-{number}", "--out", place / f"out-{number}"]
    _, said = run(["estimate", "--json", "-", "--quiet", *words, *fresh])
    seconds, _ = run([*words, *fresh, "--quiet"])
    return json.loads(said)["seconds"], seconds


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--small", action="store_true", help="the smallest sizes, once")
    parser.add_argument("--only", choices=tuple(TITLES), help="one of the commands")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=0, help="processes that decode images")
    asked = parser.parse_args()
    sizes, rounds = (SMALL, 1) if asked.small else (SIZES, asked.rounds)
    threads = os.environ.setdefault("OMP_NUM_THREADS", "1")
    print(f"load {os.getloadavg()[0]:.1f}, {threads} threads, {rounds} rounds")
    print(f"{'command':20}{'items':>7}{'predicted s':>13}{'measured s':>12}{'spread':>8}{'ratio':>7}")
    worst = 0.0
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        save_encoder(place / "clip", small=asked.small)
        number = 0
        for what in [asked.only] if asked.only else TITLES:
            title = TITLES[what]
            for size in sizes[what]:
                taken = []
                for _ in range(rounds):
                    taken.append(turn(words_of(what, size, place, asked.workers), place, number))
                    number += 1
                predicted, measured = map(statistics.median, zip(*taken, strict=True))
                seconds = [each for _, each in taken]
                ratio = predicted / measured
                worst = max(worst, abs(ratio - 1))
                print(
                    f"{title:20}{size:7,}{predicted:13.2f}{measured:12.2f}"
                    f"{max(seconds) / min(seconds) - 1:8.0%}{ratio:7.2f}",
                    flush=True,
                )
    print(f"furthest from 1: {worst:.0%}; load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
