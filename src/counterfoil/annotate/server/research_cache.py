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


@dataclass(eq=False)
class OverviewCache:
    """The latest overview; `make` makes one."""

    make: Callable[[], CampaignOverview]
    _latest: CampaignOverview | None = None
    _error: BaseException | None = None
    _next: float = 0.0
    _outdated: bool = False
    _changed: threading.Condition = field(default_factory=threading.Condition)
    _working: bool = False

    def latest(self, *, wait: float = 3.0) -> CampaignOverview | None:
        """The latest overview, and a newer one begun where it is time for one.

        Waits up to `wait` seconds for one where there is none, or where `outdate` was called since; None
        where that was too short. Raises what the last attempt raised where there never was one.
        """
        with self._changed:
            if self._outdated and self._working:
                # The one that is being made may have read before the decision.
                self._changed.wait_for(lambda: not self._working, wait)
            due = time.monotonic() >= self._next or self._outdated
            needed = self._outdated or self._latest is None
            if due and not self._working:
                self._working, self._outdated = True, False
                threading.Thread(target=self._work, name="overview", daemon=True).start()
            if needed:
                self._changed.wait_for(lambda: not self._working, wait)
            if self._latest is None and self._error is not None:
                raise self._error
            return self._latest

    def outdate(self) -> None:
        """Something was decided: the next reader waits for an overview that knows of it."""
        with self._changed:
            self._outdated = True

    def _work(self) -> None:
        begun = time.monotonic()
        made: CampaignOverview | None = None
        error: BaseException | None = None
        try:
            made = self.make()
        except Exception as raised:
            error = raised
        took = time.monotonic() - begun
        with self._changed:
            if made is not None:
                self._latest = made
            self._error = error
            self._working = False
            self._next = time.monotonic() + max(_LEAST, _TIMES * took)
            self._changed.notify_all()
