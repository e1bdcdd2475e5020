"""The floating-point operations of models, as PyTorch counts them."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def counted_flops() -> Iterator[Callable[[], float]]:
    """Count the operations of torch's modules in this block: 0 where torch is not loaded by then.

    >>> with counted_flops() as flops:
    ...     3 * 4
    12
    >>> flops()
    0.0
    """
    if "torch" not in sys.modules:
        yield lambda: 0.0
        return
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        yield lambda: float(counter.get_total_flops())
