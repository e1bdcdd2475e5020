"""The report on ordered captions: its own words in the page that all contrasts have."""

from counterfoil.benchmarks import Benchmark
from counterfoil.report.forms.contrast import ContrastReport


class OrderReport(ContrastReport):
    """Tables, notes, figures and the browser of questions are those of all contrasts."""

    KINDS = ("in order", "not in order")

    def about(self, benchmark: Benchmark) -> str:
        """What is asked."""
        k = benchmark.questions.shape[1]
        return f"{len(benchmark):,} questions. Each holds an image and {k} captions, the truest first."


REPORT = OrderReport()
