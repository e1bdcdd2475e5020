"""What models give of items in batches of a size, pictures of noise, and a pickle that runs code."""

from pathlib import Path

import numpy as np

from counterfoil.benchmarks.records import Image, PixelSource


def batched(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)]


def scored(model, pairs, size=64, **more):
    return np.concatenate(list(model.score_pairs(batched(pairs, size), **more)))


def embedded(model, items, size=4, kind="captions", **more):
    return np.concatenate(list(getattr(model, f"embed_{kind}")(batched(items, size), **more)))


def noise(*shapes, seed=0):
    rng = np.random.default_rng(seed)
    return [
        Image(str(number), PixelSource(rng.integers(0, 256, (*shape, 3), dtype=np.uint8)))
        for number, shape in enumerate(shapes)
    ]


def forward(backbone, images, captions):
    pictures = [backbone.preparation(image.decode()) for image in images]
    texts = [str(caption.text) for caption in captions]
    return backbone.network(backbone.pixels(pictures), backbone.tokens(texts))


class Bomb:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (Path.write_text, (self.path, "executed"))
