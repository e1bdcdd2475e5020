"""Benchmarks and answers: items, questions over them, groups of questions, and scorers' answers.

The forms, readers and files of benchmarks live here. Nothing here knows a model.
"""

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.frames import Sampling
from counterfoil.data.galleries import Gallery, Search
from counterfoil.data.questions import Choice, Quad
from counterfoil.data.ratings import Preference, Rated
from counterfoil.data.records import BytesSource, Caption, FileSource, Image, PixelSource
from counterfoil.data.references import References
from counterfoil.data.scores import Answers, DirectionRanks, Outcomes, Rankings, Scores
from counterfoil.data.videos import FrameFeatures, FrameFolder, Video

__all__ = [
    "Answers",
    "Benchmark",
    "BytesSource",
    "Caption",
    "Card",
    "Choice",
    "DirectionRanks",
    "FileSource",
    "FrameFeatures",
    "FrameFolder",
    "Gallery",
    "Image",
    "Outcomes",
    "PixelSource",
    "Preference",
    "Quad",
    "Rankings",
    "Rated",
    "References",
    "Sampling",
    "Scores",
    "Search",
    "Video",
]
