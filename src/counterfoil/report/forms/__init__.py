"""Reports by form of question: a module per family, and the one mapping from a form to its report."""

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Forms
from counterfoil.report.forms.base import FormReport

#: The report of every form, by the form's name; browsers stand in a page in this order.
FORMS: Forms[FormReport] = Forms(
    {
        "quad": "counterfoil.report.forms.contrast:QuadReport",
        "choice": "counterfoil.report.forms.contrast:ChoiceReport",
        "paraphrase": "counterfoil.report.forms.contrast:ParaphraseReport",
        "statement": "counterfoil.report.forms.statement:StatementReport",
        "gallery": "counterfoil.report.forms.gallery:GalleryReport",
        "rated": "counterfoil.report.forms.rated:RatedReport",
        "preference": "counterfoil.report.forms.rated:PreferenceReport",
    },
    "report",
)


def report_of(benchmark: Benchmark) -> FormReport:
    """The report of a benchmark's form."""
    return FORMS[benchmark.questions.form]
