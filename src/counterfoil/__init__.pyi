from .benchmarks.benchmark import Benchmark as Benchmark
from .benchmarks.judgements import Votes as Votes
from .errors import CounterfoilError as CounterfoilError
from .jobs.annotate_campaign import CampaignProgress as CampaignProgress, annotate_status as annotate_status
from .jobs.annotate_create import CreatedCampaign as CreatedCampaign, create_campaign as create_campaign
from .jobs.annotate_judgements import (
    CampaignExport as CampaignExport,
    PeopleAgreements as PeopleAgreements,
    annotate_agreement as annotate_agreement,
    annotate_export as annotate_export,
)
from .jobs.annotate_simulate import (
    SimulatedCampaign as SimulatedCampaign,
    annotate_simulate as annotate_simulate,
)
from .jobs.audit import Audit as Audit, audit as audit
from .jobs.bias import AnnotatorStudy as AnnotatorStudy, bias as bias
from .jobs.build import (
    BuildResult as BuildResult,
    StepResult as StepResult,
    apply_step as apply_step,
    build_benchmark as build_benchmark,
)
from .jobs.caption_systems import SystemComparison as SystemComparison, compare_systems as compare_systems
from .jobs.captions import CaptionScores as CaptionScores, score_captions as score_captions
from .jobs.compare import (
    ModelRankings as ModelRankings,
    RunComparison as RunComparison,
    compare as compare,
    rank as rank,
)
from .jobs.evaluate import (
    EvaluationRun as EvaluationRun,
    evaluate as evaluate,
    evaluate_all as evaluate_all,
    load_run as load_run,
)
from .jobs.evaluation_inputs import (
    list_benchmarks as list_benchmarks,
    load_benchmark as load_benchmark,
    load_model as load_model,
)
from .jobs.explain import Explanation as Explanation, explain as explain
from .jobs.pool import CandidatePool as CandidatePool, pool as pool
from .jobs.preferences import VoteStrengths as VoteStrengths, preferences as preferences
from .jobs.publish import Published as Published, publish as publish
from .jobs.reproduce import Reproduction as Reproduction, reproduce as reproduce
from .jobs.shared_options import AnyModel as AnyModel
from .jobs.tour import demo as demo
from .jobs.training import TrainedModel as TrainedModel, train_model as train_model
from .models.callables import as_model as as_model
from .train.recipes.base import Recipe as Recipe

__version__: str
