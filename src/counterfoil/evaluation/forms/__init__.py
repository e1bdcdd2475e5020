"""Evaluation by form of question: a module per family, and the one mapping from a form to its evaluation."""

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Forms
from counterfoil.evaluation.forms.base import FormEvaluation
from counterfoil.evaluation.forms.contrast import ChoiceEvaluation, PreferenceEvaluation, QuadEvaluation
from counterfoil.evaluation.forms.gallery import GalleryEvaluation
from counterfoil.evaluation.forms.rated import RatedEvaluation
from counterfoil.evaluation.forms.statement import StatementEvaluation

#: The evaluation of every form, by the form's name.
FORMS: Forms[FormEvaluation] = Forms(
    {
        "quad": QuadEvaluation(),
        "choice": ChoiceEvaluation(),
        "paraphrase": ChoiceEvaluation(),
        "preference": PreferenceEvaluation(),
        "statement": StatementEvaluation(),
        "gallery": GalleryEvaluation(),
        "rated": RatedEvaluation(),
    },
    "evaluation",
)


def of(benchmark: Benchmark) -> FormEvaluation:
    """The evaluation of a benchmark's form."""
    return FORMS[benchmark.questions.form]
