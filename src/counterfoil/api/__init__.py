"""The Python API: `import counterfoil as cf` offers these names, each resolved on first use.

Every function calls the task of the same name as the command line does, with the same defaults: finished work
is kept in the user's cache, notes and progress go to standard error. Errors are one line
(`counterfoil.errors.CounterfoilError`).
"""

from counterfoil.api.arguments import AnyScorer
from counterfoil.api.building import apply_step, build_benchmark, pool, publish
from counterfoil.api.captioning import compare_systems, preferences, score_captions
from counterfoil.api.explaining import explain, grade_heatmaps
from counterfoil.api.measuring import (
    compare,
    evaluate,
    evaluate_all,
    load_benchmark,
    load_run,
    load_scorer,
    rank,
)
from counterfoil.api.people import annotate_agreement, annotate_export, annotate_simulate, create_campaign
from counterfoil.api.studies import audit, bias, reproduce, study
from counterfoil.api.training import train_model
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.judgements import Votes
from counterfoil.errors import CounterfoilError
from counterfoil.evaluation.pooling import Tasks
from counterfoil.scorers.callables import scorer
from counterfoil.tasks.annotate_agreement import PeopleAgreements
from counterfoil.tasks.annotate_create import CreatedCampaign, CreateOptions
from counterfoil.tasks.annotate_export import CampaignExport
from counterfoil.tasks.annotate_simulate import SimulatedCampaign
from counterfoil.tasks.annotate_status import CampaignProgress, annotate_status
from counterfoil.tasks.audit import Audit
from counterfoil.tasks.bias import AnnotatorStudy
from counterfoil.tasks.build import BuildResult, StepResult
from counterfoil.tasks.caption_systems import SystemComparison
from counterfoil.tasks.captions import CaptionScores
from counterfoil.tasks.compare import RunComparison
from counterfoil.tasks.evaluate import EvaluateOptions
from counterfoil.tasks.explain import ExplainOptions, Explanation
from counterfoil.tasks.heat_grades import HeatGrades
from counterfoil.tasks.pool import CandidatePool
from counterfoil.tasks.preferences import VoteStrengths
from counterfoil.tasks.publish import Published
from counterfoil.tasks.rankings import ModelRankings
from counterfoil.tasks.reproduce import Ledger
from counterfoil.tasks.results import EvaluationRun
from counterfoil.tasks.study import StudyReport
from counterfoil.tasks.training import TrainedModel
from counterfoil.train.recipes.base import Recipe

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
