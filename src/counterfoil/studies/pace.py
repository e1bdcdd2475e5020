"""Estimated duration of a study on this machine, from its first steps."""

from time import perf_counter

from counterfoil.engine.progress import Note, Progress

#: Steps before the clock is started (the first ones are slow), and after which it is read.
_FROM, _TO = 3, 60


class Pace:
    """A `Progress` that notes once how long all will take, `work` steps like those of the first training.

    The time begins when it is made; whatever goes by before the first training is counted as it was.
    """

    def __init__(self, work: float, progress: Progress, note: Note) -> None:
        self._work, self._progress, self._note = work, progress, note
        self._made = perf_counter()
        #: The step at which the clock was started, and when.
        self._from: tuple[int, float] | None = None
        self._said = False

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Pass on the progress, and take the time of the first training's first steps."""
        self._progress(stage, done, total)
        if self._said or not stage.startswith("training"):
            return
        now = perf_counter()
        if self._from is None:
            if done >= _FROM:
                self._from = done, now
        elif done >= min(_TO, total):
            first, began = self._from
            whole = began - self._made + (now - began) / (done - first) * self._work
            self._said = True
            self._note(f"takes about {duration(whole)} here, by its first {done} steps")


def duration(seconds: float) -> str:
    """Seconds in words, no more exact than an estimate is.

    >>> duration(8.2), duration(83), duration(840)
    ('10 s', '1 min 20 s', '14 min')
    """
    tens = max(1, round(seconds / 10))
    if tens < 6:
        return f"{10 * tens} s"
    minutes, rest = divmod(tens, 6)
    return f"{minutes} min" + (f" {10 * rest} s" if rest and minutes < 10 else "")
