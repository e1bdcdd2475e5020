"""The world's benchmarks by name, for tests whose subject they are not."""

from functools import partial

import pytest


@pytest.fixture(scope="session", autouse=True)
def drawn_once():
    """Worlds that are asked for by name are drawn once: five hundred questions take seconds."""
    from counterfoil.world import benchmarks

    drawn = {}

    def once(name, draw, n):
        key = name, n, benchmarks.SIZE, benchmarks.IMAGES
        if key not in drawn:
            drawn[key] = draw(n)
        return drawn[key]

    with pytest.MonkeyPatch.context() as patched:
        for name, draw in dict(benchmarks._DRAWN).items():
            patched.setitem(benchmarks._DRAWN, name, partial(once, name, draw))
        yield
