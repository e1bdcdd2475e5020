"""counterfoil: do these images and captions belong together, and how sure can we be of the answer?

    import counterfoil as cf

    clip = cf.load_scorer("open-clip:ViT-B-32-quickgelu/openai")
    run = cf.evaluate(clip, "winoground", data="data/winoground", out="runs/clip")
    run.result["group"].value

These names are those of `counterfoil.api`, which is imported when the first of them is used: importing this
module alone loads nothing. Parts of the work have modules of their own: `counterfoil.data`,
`counterfoil.metrics`, `counterfoil.stats`, `counterfoil.scorers`, `counterfoil.engine`,
`counterfoil.evaluation`, `counterfoil.report`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from counterfoil.api import AnnotatorStudy as AnnotatorStudy
    from counterfoil.api import AnyScorer as AnyScorer
    from counterfoil.api import Benchmark as Benchmark
    from counterfoil.api import CandidatePool as CandidatePool
    from counterfoil.api import CaptionScores as CaptionScores
    from counterfoil.api import CounterfoilError as CounterfoilError
    from counterfoil.api import EvaluateOptions as EvaluateOptions
    from counterfoil.api import EvaluationRun as EvaluationRun
    from counterfoil.api import Ledger as Ledger
    from counterfoil.api import ModelRankings as ModelRankings
    from counterfoil.api import Recipe as Recipe
    from counterfoil.api import RunComparison as RunComparison
    from counterfoil.api import StudyReport as StudyReport
    from counterfoil.api import SystemComparison as SystemComparison
    from counterfoil.api import Tasks as Tasks
    from counterfoil.api import TrainedModel as TrainedModel
    from counterfoil.api import Votes as Votes
    from counterfoil.api import VoteStrengths as VoteStrengths
    from counterfoil.api import bias as bias
    from counterfoil.api import compare as compare
    from counterfoil.api import compare_systems as compare_systems
    from counterfoil.api import evaluate as evaluate
    from counterfoil.api import evaluate_all as evaluate_all
    from counterfoil.api import load_benchmark as load_benchmark
    from counterfoil.api import load_run as load_run
    from counterfoil.api import load_scorer as load_scorer
    from counterfoil.api import pool as pool
    from counterfoil.api import preferences as preferences
    from counterfoil.api import rank as rank
    from counterfoil.api import reproduce as reproduce
    from counterfoil.api import score_captions as score_captions
    from counterfoil.api import scorer as scorer
    from counterfoil.api import study as study
    from counterfoil.api import train_model as train_model

__version__ = "0.1.0"

__all__ = [
    "AnnotatorStudy",
    "AnyScorer",
    "Benchmark",
    "CandidatePool",
    "CaptionScores",
    "CounterfoilError",
    "EvaluateOptions",
    "EvaluationRun",
    "Ledger",
    "ModelRankings",
    "Recipe",
    "RunComparison",
    "StudyReport",
    "SystemComparison",
    "Tasks",
    "TrainedModel",
    "VoteStrengths",
    "Votes",
    "__version__",
    "bias",
    "compare",
    "compare_systems",
    "evaluate",
    "evaluate_all",
    "load_benchmark",
    "load_run",
    "load_scorer",
    "pool",
    "preferences",
    "rank",
    "reproduce",
    "score_captions",
    "scorer",
    "study",
    "train_model",
]


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'counterfoil' has no attribute '{name}'")
    from importlib import import_module

    value: object = getattr(import_module("counterfoil.api"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
