"""A caption metric: the share of vowels in a caption. It reads neither images nor references."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.models import Identity, Options
from counterfoil.models.captions.registry import MetricEntry

ENTRY = MetricEntry(
    name="vowels",
    needs=("captions",),
    summary="share of vowels among the letters, in [0, 1]",
    source="an example",
    target="counterfoil_example.vowels:load",
)


@dataclass(frozen=True)
class Vowels:
    """A `TextMetric`; 0 for a caption without letters."""

    identity: Identity
    needs: tuple[str, ...] = ("captions",)

    def of_texts(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]] = (),
        documents: np.ndarray | None = None,
    ) -> np.ndarray:
        """One number per candidate."""
        letters = [[c for c in text.lower() if c.isalpha()] for text in candidates]
        return np.array([sum(c in "aeiou" for c in each) / max(1, len(each)) for each in letters])

    def of_corpus(self, candidates: Sequence[str], references: Sequence[Sequence[str]] = ()) -> float:
        """The mean over candidates."""
        return float(self.of_texts(candidates).mean())


def load(name: str, options: Options) -> Vowels:
    """`metric:vowels`, which has no settings."""
    return Vowels(Identity(f"metric:{name}", revision="1"))
