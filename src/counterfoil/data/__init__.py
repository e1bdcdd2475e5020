"""Benchmarks and answers: items, questions over them, groups of questions, and scorers' answers.

The forms, readers and files of benchmarks live here. Nothing here knows a model.
"""

from counterfoil.data.answers import Answers, DirectionRanks, Outcomes, Rankings, Scores
from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.decoding import Sampling
from counterfoil.data.forms import Choice, Gallery, Preference, Quad, Rated, Search, Statement
from counterfoil.data.records import BytesSource, Caption, FileSource, Image, PixelSource
from counterfoil.data.references import References
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
    "Statement",
    "Video",
]
