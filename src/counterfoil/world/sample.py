"""Benchmarks drawn from the world: every question known to have exactly one answer."""

from collections.abc import Sequence

import numpy as np

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.questions import Quad
from counterfoil.data.records import BytesSource, Caption, Image
from counterfoil.errors import InputError
from counterfoil.world.captions import OPENINGS, Meaning, text
from counterfoil.world.edits import SUBSETS, Contrast, edit
from counterfoil.world.render import draw, encode
from counterfoil.world.scenes import Scene, one_of, sample_scene

#: At most this many edits of one scene, so that questions share images as they do in real benchmarks.
MOST_EDITS = 3

CARD = Card(
    name="world",
    title="World (paper shapes, drawn with known truth)",
    form="quad",
    licence="Apache-2.0",
    redistributable=True,
    measures=("i2t", "t2i", "group"),
    groupings=("type", "subset"),
    macro="subset",
    pitfalls=(
        "Up to three questions share an image: take intervals over clusters.",
        "Captions of ADD say that there is nothing else: without it both fit the second image.",
    ),
)


def contrasts(n: int, *, seed: int = 0) -> list[Contrast]:
    """`n` unambiguous contrasts, the seven kinds of edit equally often, one to three to a scene.

    The same seed gives the same contrasts, and a larger `n` begins with those of a smaller one. No caption
    is used for two scenes, so questions share items only where they are edits of one scene.

    >>> [contrast.type for contrast in contrasts(7)].count("replace")
    3
    """
    if n < 1:
        raise InputError("the number of questions must be positive", given=n, allowed="1, 2, 3, ...")
    rng = np.random.default_rng(seed)
    made: list[Contrast] = []
    queue: list[str] = []
    spoken: set[Meaning] = set()
    while len(made) < n:
        scene = sample_scene(rng)
        said: set[Meaning] = set()
        for _ in range(int(rng.integers(1, MOST_EDITS + 1))):
            if not queue:
                queue = [SUBSETS[i] for i in rng.permutation(len(SUBSETS))]
            contrast = edit(scene, queue[0], rng)
            # A scene without room for the edit leaves it to the next one.
            if contrast is None or spoken.intersection(contrast.captions):
                break
            said.update(contrast.captions)
            made.append(contrast)
            queue.pop(0)
        spoken |= said
    return made[:n]


def quads(n: int, *, seed: int = 0, size: int = 192) -> Benchmark:
    """A benchmark of `n` quads with pictures of `size` x `size` pixels; the same seed gives the same bytes.

    Groupings are `type` ("replace", "swap", "add") and `subset` ("replace_obj", ...).

    >>> benchmark = quads(7, size=48)
    >>> len(benchmark), sorted(set(benchmark.questions.groupings["type"]))
    (7, ['add', 'replace', 'swap'])
    """
    return benchmark(contrasts(n, seed=seed), seed=seed, size=size)


def benchmark(made: Sequence[Contrast], *, seed: int = 0, size: int = 192) -> Benchmark:
    """The contrasts spoken and drawn; equal scenes become one image and equal sentences one caption.

    `seed` decides how captions begin; both captions of a contrast begin alike.
    """
    rng = np.random.default_rng([seed, 1])
    scenes: dict[Scene, int] = {}
    texts: dict[str, int] = {}
    captions, images = [], []
    for contrast in made:
        opening = one_of(OPENINGS, rng)
        captions.append([texts.setdefault(text(c, opening=opening), len(texts)) for c in contrast.captions])
        images.append([scenes.setdefault(scene, len(scenes)) for scene in contrast.scenes])
    return Benchmark(
        card=CARD,
        images=tuple(
            Image(f"scene-{i:05d}", BytesSource(encode(draw(scene, size)), f"scene {i} of the world"))
            for scene, i in scenes.items()
        ),
        captions=tuple(Caption(f"caption-{i:05d}", said) for said, i in texts.items()),
        questions=Quad(
            ids=tuple(f"{contrast.subset}-{i:05d}" for i, contrast in enumerate(made)),
            captions=np.asarray(captions, dtype=np.int64),
            images=np.asarray(images, dtype=np.int64),
            groupings={
                "type": tuple(contrast.type for contrast in made),
                "subset": tuple(contrast.subset for contrast in made),
            },
        ),
        source=f"drawn with seed {seed}, {size} x {size} pixels",
    )
