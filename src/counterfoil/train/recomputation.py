"""Activations that are computed again in the backward pass in place of being kept: activation checkpointing.

Of a network of N blocks the inputs of all blocks are kept and the activations of one, for a second forward
pass (Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

from torch import is_grad_enabled, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.utils.checkpoint import checkpoint

from counterfoil.scorers.networks import Network


def blocks(network: nn.Module) -> list[nn.Module]:
    """The layers of its towers: what is repeated in a row, has parts, and holds no such row itself.

    Residual blocks of open_clip and timm, the encoder layers of transformers; empty for a network without.

    >>> layer = lambda: nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    >>> len(blocks(nn.Sequential(nn.Linear(2, 2), nn.Sequential(layer(), layer(), layer()))))
    3
    """
    rows = [
        list(module)
        for module in network.modules()
        if isinstance(module, nn.ModuleList | nn.Sequential)
        and len(module) > 1
        and len({type(each) for each in module}) == 1
        and any(module[0].children())
    ]
    found = {id(block): block for row in rows for block in row}
    return [
        block
        for block in found.values()
        if not any(id(m) in found for m in block.modules() if m is not block)
    ]


@contextmanager
def recomputed(network: Network, wanted: bool = True) -> Iterator[None]:
    """Within, training the network keeps the inputs of its blocks alone; without blocks, those of its towers.

    Gradients are the same: random numbers (dropout) are drawn as the first time, and batch norms count a
    batch once. In evaluation, and without gradients, nothing is different.
    """
    if not wanted:
        yield
        return
    found: list[tuple[nn.Module, str, nn.Module]] = [(each, "forward", each) for each in blocks(network)]
    found = found or [(network, name, network) for name in ("encode_images", "encode_texts")]
    for owner, name, module in found:
        setattr(owner, name, partial(_run, getattr(owner, name), module))
    try:
        yield
    finally:
        for owner, name, _ in found:
            delattr(owner, name)


def _run(compute: Callable[..., Any], module: nn.Module, *given: Any, **named: Any) -> Any:
    if not (module.training and is_grad_enabled()):
        return compute(*given, **named)
    norms = [each for each in module.modules() if isinstance(each, _BatchNorm)]

    def contexts() -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
        return nullcontext(), _uncounted(norms)

    return checkpoint(compute, *given, use_reentrant=False, context_fn=contexts, **named)


@contextmanager
def _uncounted(norms: Sequence[nn.Module]) -> Iterator[None]:
    """Batch norms see a batch that they have counted already."""
    kept = [(buffer, buffer.clone()) for norm in norms for buffer in norm.buffers()]
    try:
        yield
    finally:
        for buffer, before in kept:
            buffer.copy_(before)
