"""How many shards a process takes at once: few that are long, many that are tiny."""

from dataclasses import dataclass

#: Shards that a process takes at once, however long they are: enough to keep its decoding ahead.
AT_ONCE = 8
#: Seconds that shards take together, where they are so tiny that more than `AT_ONCE` are taken.
_TOGETHER = 0.4
#: How many times as many the next ones may be, since a few shards tell little of the others.
_GROWTH = 4


@dataclass
class ShardPace:
    """The number of shards to take next, from how long those before took.

    Leases, messages and looks into the cache cost milliseconds for each time that shards are taken; that is
    much for shards of a millisecond. Of long ones few are taken, since they wait where their process is lost.

    >>> pace = ShardPace()
    >>> pace.at_once(1000, processes=2)
    8
    >>> pace.timed(8, seconds=0.02)
    >>> pace.at_once(1000, processes=2), pace.at_once(100, processes=2), pace.at_once(3, processes=2)
    (32, 25, 1)
    >>> pace.timed(32, seconds=60.0)
    >>> pace.at_once(1000, processes=2)
    8
    """

    _most: int = AT_ONCE

    def timed(self, shards: int, seconds: float) -> None:
        """Note that so many shards took so long, all around them included."""
        if shards:
            wanted = int(_TOGETHER * shards / max(seconds, 1e-6))
            self._most = max(AT_ONCE, min(wanted, _GROWTH * self._most))

    def at_once(self, left: int, processes: int) -> int:
        """How many of the shards that are left, at least 1, so that all processes have some to the end."""
        return max(1, min(self._most, left // (2 * processes)))
