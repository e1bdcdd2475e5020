"""Pictures of the world, drawn when they are read."""

import io
from dataclasses import dataclass, replace

import PIL.Image

from counterfoil.data.benchmark import Benchmark
from counterfoil.world.animation import Animation
from counterfoil.world.render import draw, encode
from counterfoil.world.scenes import Scene

#: Pictures of at most so many pixels to a side are kept as they are, larger ones as JPEG: it would blur what
#: little a small one shows.
AS_PIXELS = 96


@dataclass(frozen=True)
class LazyDrawing:
    """A scene that is drawn when its bytes are asked for; a source of images like any other.

    >>> import numpy as np
    >>> from counterfoil.world.scenes import sample_scene
    >>> LazyDrawing(sample_scene(np.random.default_rng(0)), 48, "natural").read()[1:4]
    b'PNG'
    """

    scene: Scene
    size: int
    style: str
    where: str = "a scene of the world"

    def read(self) -> bytes:
        """The picture as PNG where it is small, else as JPEG."""
        picture = self.picture()
        if picture is None:
            return encode(draw(self.scene, self.size, style=self.style))
        buffer = io.BytesIO()
        picture.save(buffer, format="PNG")
        return buffer.getvalue()

    def picture(self) -> PIL.Image.Image | None:
        """The picture as it is drawn, where it is small; a JPEG's pixels are other ones."""
        return draw(self.scene, self.size, style=self.style) if self.size <= AS_PIXELS else None

    def __str__(self) -> str:
        return self.where


def sized(benchmark: Benchmark, size: int) -> Benchmark:
    """The benchmark with those of its pictures and clips that are drawn when read at another size."""
    return replace(
        benchmark,
        images=tuple(
            replace(image, source=replace(image.source, size=size))
            if isinstance(image.source, LazyDrawing | Animation)
            else image
            for image in benchmark.images
        ),
    )
