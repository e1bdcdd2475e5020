"""Reports by form of question: a module per family, and the one mapping from a form to its report."""

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Forms
from counterfoil.report.forms.base import FormReport
from counterfoil.report.forms.contrast import ChoiceReport, ParaphraseReport, QuadReport
from counterfoil.report.forms.gallery import GalleryReport
from counterfoil.report.forms.rated import PreferenceReport, RatedReport
from counterfoil.report.forms.statement import StatementReport

#: The report of every form, by the form's name; browsers stand in a page in this order.
FORMS: Forms[FormReport] = Forms(
    {
        "quad": QuadReport(),
        "choice": ChoiceReport(),
        "paraphrase": ParaphraseReport(),
        "statement": StatementReport(),
        "gallery": GalleryReport(),
        "rated": RatedReport(),
        "preference": PreferenceReport(),
    },
    "report",
)


def report_of(benchmark: Benchmark) -> FormReport:
    """The report of a benchmark's form."""
    return FORMS[benchmark.questions.form]
