"""Points whose truth is known, models that see them with noise, and judgements of what these propose."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from contracts import forms
from counterfoil.benchmarks import Benchmark, Caption, Image
from counterfoil.benchmarks.tables import read_table
from counterfoil.engine.gallery import rank
from counterfoil.engine.similarity import Matrix
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import save_run
from counterfoil.metrics.ranks import Qrels

IMAGES, PER = 40, 3
NAMES = ("one", "two", "three")


@dataclass(frozen=True)
class World:
    """Images and captions as points; who matches whom is known, models see points with noise."""

    folder: Path
    true: np.ndarray
    scores: dict[str, np.ndarray]
    benchmark: Benchmark

    def files(self, *names: str) -> list[Path]:
        return [self.folder / f"{name}.npz" for name in names or NAMES]

    def run(self, name: str, *, top: int = 50, benchmark: Benchmark | None = None) -> Path:
        benchmark = benchmark or self.benchmark
        answers = rank([benchmark], Matrix(self.scores[name]), top=top)[0]
        result = evaluate(benchmark, answers, model=name, draws=100)
        folder = self.folder / "runs" / name / benchmark.name
        save_run(folder, benchmark, answers, result, {})
        return folder


def image_id(i: int) -> str:
    return str(100 + i)


def made(folder: Path) -> World:
    """Embeddings and scores of three models over forty images with three captions each, in a folder."""
    rng = np.random.default_rng(0)
    image = rng.normal(size=(IMAGES, 6))
    caption = np.repeat(image, PER, axis=0) + 0.6 * rng.normal(size=(IMAGES * PER, 6))
    unit = [points / np.linalg.norm(points, axis=1, keepdims=True) for points in (image, caption)]
    ids = {"image_ids": np.arange(100, 100 + IMAGES), "caption_ids": np.arange(IMAGES * PER)}
    scores = {}
    for name in NAMES:
        seen = [points + 0.6 * rng.normal(size=points.shape) for points in (image, caption)]
        seen = [points / np.linalg.norm(points, axis=1, keepdims=True) for points in seen]
        np.savez(folder / f"{name}.npz", images=seen[0], captions=seen[1], **ids)
        scores[name] = seen[0] @ seen[1].T
    own = np.arange(IMAGES * PER).reshape(-1, PER).tolist()
    captions = [Caption(str(c), f'words, of "{c}"') for c in range(IMAGES * PER)]
    right = (Qrels.of(own), Qrels.of([[c // PER] for c in range(IMAGES * PER)]))
    images = [Image(image_id(i)) for i in range(IMAGES)]
    card = {"name": "mine", "title": "Mine", "measures": ("recall_at_1",)}
    benchmark = forms.gallery_of(images, captions, right, **card)
    return World(folder, unit[0] @ unit[1].T, scores, benchmark)


def judged(world: World, pool: Path, *, words: bool = True) -> Path:
    """The pool with the answers of somebody who knows the truth."""
    table = read_table(pool)
    names = [name for name in table.columns if name != "text"]
    path = world.folder / "judged.csv"
    lines = [",".join([*names, "answer" if words else "gain"])]
    for row in range(len(table)):
        near = world.true[int(table["image"][row]) - 100, int(table["caption"][row])]
        gain = 1 if near > 0.8 else 0.5 if near > 0.6 else 0
        answer = {1: "100% YES", 0.5: "Partially YES but", 0: "Mostly NO because"}[gain]
        lines.append(",".join([*(str(table[name][row]) for name in names), answer if words else str(gain)]))
    path.write_text("\n".join(lines))
    return path


def first(scores: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]
