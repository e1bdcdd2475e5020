"""Evaluation by form of question: a module per family, and the one mapping from a form to its evaluation."""

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Forms
from counterfoil.evaluation.forms.base import FormEvaluation

#: The evaluation of every form, by the form's name.
FORMS: Forms[FormEvaluation] = Forms(
    {
        "quad": "counterfoil.evaluation.forms.contrast:QuadEvaluation",
        "choice": "counterfoil.evaluation.forms.contrast:ChoiceEvaluation",
        "paraphrase": "counterfoil.evaluation.forms.contrast:ChoiceEvaluation",
        "preference": "counterfoil.evaluation.forms.contrast:PreferenceEvaluation",
        "statement": "counterfoil.evaluation.forms.statement:StatementEvaluation",
        "gallery": "counterfoil.evaluation.forms.gallery:GalleryEvaluation",
        "rated": "counterfoil.evaluation.forms.rated:RatedEvaluation",
    },
    "evaluation",
)


def of(benchmark: Benchmark) -> FormEvaluation:
    """The evaluation of a benchmark's form."""
    return FORMS[benchmark.questions.form]
