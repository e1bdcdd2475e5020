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
    from counterfoil.api import *

__version__ = "0.1.0"

__all__ = [
    "AnnotatorStudy",
    "AnyScorer",
    "Audit",
    "Benchmark",
    "BuildResult",
    "CampaignExport",
    "CampaignProgress",
    "CandidatePool",
    "CaptionScores",
    "CounterfoilError",
    "CreateOptions",
    "CreatedCampaign",
    "EvaluateOptions",
    "EvaluationRun",
    "ExplainOptions",
    "Explanation",
    "HeatGrades",
    "Ledger",
    "ModelRankings",
    "PeopleAgreements",
    "Published",
    "Recipe",
    "RunComparison",
    "SimulatedCampaign",
    "StepResult",
    "StudyReport",
    "SystemComparison",
    "Tasks",
    "TrainedModel",
    "VoteStrengths",
    "Votes",
    "__version__",
    "annotate_agreement",
    "annotate_export",
    "annotate_simulate",
    "annotate_status",
    "apply_step",
    "audit",
    "bias",
    "build_benchmark",
    "compare",
    "compare_systems",
    "create_campaign",
    "evaluate",
    "evaluate_all",
    "explain",
    "grade_heatmaps",
    "load_benchmark",
    "load_run",
    "load_scorer",
    "pool",
    "preferences",
    "publish",
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
