"""Rankings of models: do measures and benchmarks agree on them, and how different are the models' lists?"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.evaluation.list_overlap import Diversity, diversity
from counterfoil.evaluation.rank_correlation import RankCorrelation, rank_correlation
from counterfoil.evaluation.result import Run
from counterfoil.jobs.feedback import SILENT, Feedback
from counterfoil.jobs.outputs import load_runs, write
from counterfoil.jobs.results import Tabular
from counterfoil.report.tables import Table


@dataclass(frozen=True, eq=False, repr=False)
class ModelRankings(Tabular):
    """Rank correlations between measures, the rank of every model, and how far models' lists differ.

    Rows by "pair" are one per pair of measures: `a`, `b`, `models`, Kendall's `tau` and Spearman's `rho` in
    [-1, 1] with their intervals (`tau_low`, `tau_high`, `rho_low`, `rho_high`). Rows by "model" are one per
    model and measure: `model`, `measure`, `value`, `rank` from 1, equal models sharing the best of theirs.
    """

    correlation: RankCorrelation
    #: How far the first items of the models differ, per direction of each gallery.
    lists: tuple[Diversity, ...]
    runs: tuple[Run, ...]

    rows_by = ("pair", "model")

    def _rows(self, by: str) -> pa.Table:
        correlation = self.correlation
        if by == "pair":
            return pa.Table.from_pylist([asdict(pair) for pair in correlation.pairs])
        return pa.Table.from_pylist(
            [
                {"model": model, "measure": column.name, "value": value, "rank": rank}
                for model, values, ranks in zip(
                    correlation.models, correlation.values.tolist(), correlation.ranks.tolist(), strict=True
                )
                for column, value, rank in zip(correlation.columns, values, ranks, strict=True)
            ]
        )

    @property
    def tables(self) -> tuple[Table, ...]:
        """The agreement of measures, and the ranks of the models."""
        from counterfoil.report.rankings_page import agreements_table, ranks_table

        return agreements_table(self.correlation), ranks_table(self.correlation)

    @property
    def notes(self) -> list[str]:
        """The measures that were left out, if any."""
        few = self.correlation.few
        return [f"left out, since fewer than three models have them: {', '.join(few)}"] if few else []

    def __repr__(self) -> str:
        correlation = self.correlation
        return f"<ModelRankings of {', '.join(correlation.models)} by {len(correlation.columns)} measures>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `rankings --json` writes it."""
        return {
            **self.correlation.to_json(),
            "lists": [diversity_of.to_json() for diversity_of in self.lists],
        }

    def to_csv(self) -> str:
        """All numbers as CSV, one a line."""
        from counterfoil.report.rankings_page import to_csv

        return to_csv(self.correlation, self.lists)

    def to_html(
        self,
        path: str | Path,
        *,
        title: str = "What rankings say",
        private: bool = False,
        overwrite: bool = False,
    ) -> None:
        """Write one self-contained page with figures; `private` keeps paths and users. Needs matplotlib."""
        from counterfoil.report.drawing import check
        from counterfoil.report.rankings_page import page

        check()
        html = page(self.correlation, self.lists, runs=self.runs, title=title, private=private)
        write(path, html, command="rankings", overwrite=overwrite)

    def plot(self) -> Any:
        """A matplotlib figure: the rank of every model by measure."""
        from counterfoil.report.ranking_figures import bump

        return bump(self.correlation)


def rank(
    runs: Sequence[Run | str | Path],
    *,
    measures: Sequence[str] = (),
    k: int = 25,
    draws: int = 1000,
    seed: int = 0,
    feedback: Feedback = SILENT,
) -> ModelRankings:
    """Whether measures and benchmarks put the models of `runs` in the same order.

    `runs` are runs, run folders, and folders of them, of three models or more. `measures` are names, with
    their benchmark (`eccv:mean_map_at_r`) or without, or patterns; none named are all. The first `k` items of
    each query are compared. Raises what `counterfoil.evaluation.rank_correlation` raises.
    """
    loaded = load_runs(runs, feedback)
    correlation = rank_correlation(loaded, measures=measures, draws=draws, seed=seed)
    return ModelRankings(correlation, diversity(loaded, k=k), tuple(loaded))
