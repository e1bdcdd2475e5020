"""The caption metrics to compute: names, settings, backbone and batches."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil import catalog
from counterfoil.cli import caption_items, terminal
from counterfoil.cli.options import key_values
from counterfoil.engine.caption_inputs import CaptionInputs
from counterfoil.engine.caption_scoring import metric_for
from counterfoil.engine.progress import Note, Progress
from counterfoil.engine.session import Session
from counterfoil.errors import InputError
from counterfoil.scorers.base import Options
from counterfoil.scorers.captions.base import CaptionMetric
from counterfoil.scorers.captions.registry import SEVERAL, entry, several


@dataclass(frozen=True)
class Request:
    """Metrics by name, and all that decides how they are asked."""

    names: tuple[str, ...]
    settings: Mapping[str, str]
    options: Options
    batch_size: int
    workers: int
    quiet: bool

    @classmethod
    def of(
        cls,
        metrics: str,
        settings: Sequence[str] | None,
        options: Options,
        batch_size: int,
        workers: int | None,
        *,
        quiet: bool,
    ) -> "Request":
        """What the options of a command say; raises what `check` raises, before anything is read."""
        names, given = several([metrics]), key_values(settings or ())
        check(names, options.backbone, given)
        processes = min(8, os.cpu_count() or 1) if workers is None else workers
        return cls(names, given, options, batch_size, processes, quiet)

    @property
    def say(self) -> Note:
        """Who is told what was done."""
        return _nothing if self.quiet else terminal.note

    def asked(
        self,
        candidates: Path,
        references: Path | None,
        shown: caption_items.MediaFolder,
        *,
        note: Note | None = None,
        **policies: Any,
    ) -> CaptionInputs:
        """All that is asked about one file of candidates; `policies` are those of `caption_items.asked`."""
        return caption_items.asked(
            candidates,
            references,
            shown,
            needs={each for name in self.names for each in entry(name).needs},
            embedded=self.options.backbone.startswith("embeddings:"),
            note=note or self.say,
            **policies,
        )

    def load(self, asked: CaptionInputs, *, memory: Path | None) -> dict[str, CaptionMetric]:
        """The metrics by name, as they are asked of these; those with a model share the one behind them."""
        with terminal.busy("loading metrics", quiet=self.quiet):
            found = catalog.caption_metrics(
                self.names, self.options, memory=memory, settings=settings_of(self.names, self.settings)
            )
        return {name: metric_for(metric, asked.images) for name, metric in found.items()}

    def session(self, cache: Path | None, progress: Progress) -> Session:
        """The session in which the metrics are computed."""
        note = _nothing if self.quiet else terminal.warn
        return Session(cache, self.batch_size, self.workers, progress, note)


def settings_of(names: Sequence[str], given: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """What is set of each metric: `KEY` of all that are named, `METRIC.KEY` of one (or of all of bleu).

    >>> settings_of(["bleu-1", "clip-s"], {"bleu.length": "shortest", "clip-s.prefix": ""})
    {'bleu-1': {'length': 'shortest'}, 'clip-s': {'prefix': ''}}
    """
    found: dict[str, dict[str, str]] = {name: {} for name in names}
    for key, value in given.items():
        metric, dot, own = key.partition(".")
        meant = SEVERAL.get(metric, (metric,)) if dot else names
        chosen = [name for name in names if name in meant]
        if not chosen:
            raise InputError(
                "a setting of a metric that is not asked for", given=f"--set {key}", allowed=names
            )
        for name in chosen:
            found[name][own if dot else key] = value
    return found


def check(names: Sequence[str], scorer: str | None, given: Mapping[str, str]) -> None:
    """Raise `InputError` where a metric needs a model and none is named, or none needs the one that is.

    And where something is set of a metric that is not asked for.
    """
    looking = [name for name in names if entry(name).has_model]
    if looking and not scorer:
        raise InputError(
            "needs a model to look with",
            where=f"metric:{looking[0]}",
            hint="name one with --scorer, such as --scorer open-clip:ViT-B-32-quickgelu/openai",
        )
    if scorer and not looking:
        raise InputError(
            "none of these metrics has a model behind it",
            where=", ".join(names),
            given=f"--scorer {scorer}",
            hint="leave --scorer out",
        )
    settings_of(names, given)


def _nothing(text: str) -> None:
    """No notes."""
