"""How much faster captions are tokenised and scored than by the COCO tool kit, in one run.

    python benchmarks/captions.py [--images N] [--data DIR]

The load is Flickr8k's: each of its 40,460 captions against the other four of its image. Both sides get the
same texts and do the same: tokens, BLEU-1 to BLEU-4, ROUGE-L, CIDEr. The tool kit is `pycocoevalcap`, whose
tokenizer runs in Java, once for the references and once for the candidates. Each side runs in a process of
its own, which reports seconds by the clock, seconds of processor time (its Java's too) and the most memory it
and its Java had. Reading the captions and importing is not timed. Exits with 1 where the two sides disagree
on a token, or on a score by more than 1e-9. Without the data, Java or pycocoevalcap there is nothing to
measure, which is said.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from itertools import pairwise
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from time import perf_counter
from typing import Any

STAGES = ("tokens", "BLEU", "ROUGE-L", "CIDEr")
SIDES = ("counterfoil", "tool kit")

#: What a side gives: a stage's work, called in order, and in the end what came out by name.
Work = tuple[list[Callable[[], None]], dict[str, Any]]


def captions(data: Path, images: int | None) -> list[list[str]]:
    """The captions of each image."""
    found: dict[str, list[str]] = {}
    for line in (data / "flickr8k" / "Flickr8k.token.txt").read_text("utf-8").splitlines():
        key, text = line.split("\t", 1)
        found.setdefault(key.split("#")[0], []).append(text)
    return list(found.values())[:images]


def ours(candidates: list[str], references: list[list[str]]) -> Work:
    """What this package does."""
    from counterfoil.metrics.captions import cider, ngrams
    from counterfoil.metrics.captions.ngrams import load
    from counterfoil.metrics.captions.ptb import tokenize_all

    made: dict[str, Any] = {}

    def tokens() -> None:
        starts = [0]
        for listed in references:
            starts.append(starts[-1] + len(listed))
        flat = tokenize_all([*candidates, *(text for listed in references for text in listed)])
        n = len(candidates)
        made["tokens"] = (flat[:n], [flat[n + a : n + b] for a, b in pairwise(starts)])

    def scored_bleu() -> None:
        made["load"] = load(*made["tokens"])
        made["BLEU"] = ngrams.bleu(made["load"]).items

    def scored_rouge() -> None:
        made["ROUGE-L"] = ngrams.rouge_l(made["load"])

    def scored_cider() -> None:
        made["CIDEr"] = cider.cider(made["load"])

    return [tokens, scored_bleu, scored_rouge, scored_cider], made


def theirs(candidates: list[str], references: list[list[str]]) -> Work:
    """What `pycocoevalcap` does."""
    from pycocoevalcap.bleu.bleu import Bleu
    from pycocoevalcap.cider.cider import Cider
    from pycocoevalcap.rouge.rouge import Rouge
    from pycocoevalcap.tokenizer.ptbtokenizer import PTBTokenizer

    made: dict[str, Any] = {}
    read: dict[str, Any] = {}

    def tokens() -> None:
        gold = {i: [{"caption": text} for text in listed] for i, listed in enumerate(references)}
        read["gold"] = PTBTokenizer().tokenize(gold)
        read["found"] = PTBTokenizer().tokenize({i: [{"caption": text}] for i, text in enumerate(candidates)})
        rows = range(len(candidates))
        made["tokens"] = ([read["found"][i][0] for i in rows], [read["gold"][i] for i in rows])

    def scored(name: str, model: Any) -> Callable[[], None]:
        def work() -> None:
            with redirect_stdout(StringIO()):
                made[name] = model.compute_score(read["gold"], read["found"])[1]

        return work

    models = (("BLEU", Bleu(4)), ("ROUGE-L", Rouge()), ("CIDEr", Cider()))
    return [tokens, *(scored(name, model) for name, model in models)], made


def processor() -> float:
    """Seconds of processor time of this process and of those it has waited for."""
    used = [getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


def run_side(side: str, data: Path, images: int | None, out: Path) -> None:
    """One side: its times and memory as JSON, its tokens and scores in a file."""
    import numpy as np

    sets = captions(data, images)
    pairs = [(own[i], own[:i] + own[i + 1 :]) for own in sets for i in range(len(own))]
    candidates, references = [text for text, _ in pairs], [others for _, others in pairs]
    stages, made = (ours if side == SIDES[0] else theirs)(candidates, references)
    clock, spent = [], []
    for stage in stages:
        start, used = perf_counter(), processor()
        stage()
        clock.append(perf_counter() - start)
        spent.append(processor() - used)
    memory = [getrusage(who).ru_maxrss / 1024 for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    tokens = json.dumps(made["tokens"])
    items = np.asarray(made["BLEU"])
    np.savez(out, bleu=items if items.shape[1] == 4 else items.T, rouge=made["ROUGE-L"], cider=made["CIDEr"])
    out.with_suffix(".json").write_text(tokens, "utf-8")
    print(json.dumps({"clock": clock, "spent": spent, "memory": memory, "items": len(pairs)}))


def disagreements(folder: Path) -> list[str]:
    """In what the two sides differ, in words."""
    import numpy as np

    found = []
    one, other = ((folder / f"{i}.json").read_text("utf-8") for i in range(len(SIDES)))
    if one != other:
        found.append("tokens differ")
    with np.load(folder / "0.npz") as left, np.load(folder / "1.npz") as right:
        for name in left.files:
            gap = float(np.abs(left[name] - right[name]).max())
            print(f"  largest difference of {name}: {gap:.1e}")
            if not gap <= 1e-9:
                found.append(f"{name} differs by {gap}")
    return found


def lacking(data: Path) -> str | None:
    """What there is no measuring without; None where all is here."""
    if not (data / "flickr8k" / "Flickr8k.token.txt").is_file():
        return f"no flickr8k/Flickr8k.token.txt in {data}, name another folder with --data"
    if find_spec("pycocoevalcap") is None:
        return "pycocoevalcap is not installed"
    return None if shutil.which("java") else "no Java program"


def main() -> int:
    """Print seconds, ratios and memory."""
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=Path(os.environ.get("COUNTERFOIL_DATA", beside)))
    parser.add_argument("--images", type=int, help="so many images only")
    parser.add_argument("--side", choices=SIDES, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.side:
        run_side(chosen.side, chosen.data, chosen.images, chosen.out)
        return 0
    if (missing := lacking(chosen.data)) is not None:
        print(f"captions are not measured: {missing}")
        return 0
    results = []
    with tempfile.TemporaryDirectory() as folder:
        for number, side in enumerate(SIDES):
            more = ["--images", str(chosen.images)] if chosen.images else []
            out = ["--side", side, "--out", str(Path(folder) / f"{number}.npz"), "--data", str(chosen.data)]
            command = [sys.executable, __file__, *out, *more]
            ran = subprocess.run(command, capture_output=True, text=True)
            if ran.returncode:
                print(ran.stderr, file=sys.stderr)
                return 1
            results.append(json.loads(ran.stdout.splitlines()[-1]))
        left, right = results
        print(f"{left['items']} captions, each against its image's others")
        print(f"  {'':<12}{SIDES[0]:>24}{SIDES[1]:>24}{'ratio':>16}")
        print("  seconds     " + 2 * f"{'clock':>14}{'processor':>10}" + f"{'clock':>8}{'proc.':>8}")
        rows = [
            (name, *(r[kind][i] for r in results for kind in ("clock", "spent")))
            for i, name in enumerate(STAGES)
        ]
        rows.append(("in all", *(sum(r[kind]) for r in results for kind in ("clock", "spent"))))
        for name, a, b, c, d in rows:
            print(f"  {name:<12}{a:14.2f}{b:10.2f}{c:14.2f}{d:10.2f}{c / a:8.1f}{d / b:8.1f}")
        print(
            f"  most memory: {SIDES[0]} {left['memory'][0]:.0f} MB; {SIDES[1]} {right['memory'][0]:.0f} MB,"
        )
        print(f"  and its Java beside it {right['memory'][1]:.0f} MB")
        wrong = disagreements(Path(folder))
    for line in wrong:
        print(line, file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
