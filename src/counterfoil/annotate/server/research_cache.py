"""Cache of the overview: made in a thread of its own, at most every few seconds, and never twice at once.

Agreement of a hundred thousand answers takes seconds, which no request waits for; the longer an overview
takes the seldomer it is made, so that it never takes more than a twentieth of the time.
"""

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from counterfoil.annotate.overview import CampaignOverview

#: Seconds between two overviews, at least, and how many times as long as one took.
_LEAST, _TIMES = 5.0, 20.0
#: Seconds that a request waits for one.
PATIENCE = 3.0


@dataclass(eq=False)
class OverviewCache:
    """The latest overview; `make` makes one."""

    make: Callable[[], CampaignOverview]
    _latest: CampaignOverview | None = None
    _error: BaseException | None = None
    _next: float = 0.0
    #: How many decisions there were, and how many of them the one begun last and the latest one know of.
    _decided: int = 0
    _begun: int = 0
    _known: int = 0
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _working: bool = False

    def latest(self) -> CampaignOverview | None:
        """The latest finished overview, and a newer one begun where it is time for one.

        Waits up to `PATIENCE` seconds for one where there is none, or where `outdate` was
        called since. Where that was too short it is the one of before (`behind` then), None where there never
        was one. Raises what the last attempt raised where there never was one.
        """
        with self._changed:
            if self._begun < self._decided and self._working:
                # The one that is being made may have read before the decision.
                self._changed.wait_for(lambda: not self._working, PATIENCE)
            due = time.monotonic() >= self._next or self._begun < self._decided
            if due and not self._working:
                self._working, self._begun = True, self._decided
                threading.Thread(target=self._work, name="overview", daemon=True).start()
            if self.behind or self._latest is None:
                self._changed.wait_for(lambda: not self._working, PATIENCE)
            if self._latest is None and self._error is not None:
                raise self._error
            return self._latest

    @property
    def behind(self) -> bool:
        """Whether something was decided that the latest finished overview may not know of."""
        return self._known < self._decided

    def outdate(self) -> None:
        """Something was decided: the next reader waits for an overview that knows of it."""
        with self._changed:
            self._decided += 1

    def _work(self) -> None:
        begun = time.monotonic()
        overview, error = None, None
        try:
            overview = self.make()
        except Exception as raised:
            error = raised
        took = time.monotonic() - begun
        with self._changed:
            if overview is not None:
                self._latest, self._known = overview, self._begun
            self._error = error
            self._working = False
            self._next = time.monotonic() + max(_LEAST, _TIMES * took)
            self._changed.notify_all()
