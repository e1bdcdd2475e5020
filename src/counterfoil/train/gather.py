"""One batch out of what several devices hold, with gradients: every negative counts everywhere."""

from typing import Any

import torch
from lightning_fabric import Fabric
from torch import Tensor, distributed


def gather(tensor: Tensor, fabric: Fabric | None) -> Tensor:
    """The rows of all devices, those of the first device first; on one device the tensor itself.

    All devices compute the same loss of the same gathered rows. Backwards, each gets for its own rows the
    sum of what all of them say, which is their number times the gradient; where gradients of weights are
    then averaged over devices, as `DistributedDataParallel` does, that is exactly the gradient of one device
    with the whole batch, for weights of the loss itself (the temperature) too. Nothing is to be scaled.

    Half precision is gathered as float32, so that gradients are summed in it. Devices must hold the same
    number of rows: otherwise they wait for each other forever.
    """
    if fabric is None or fabric.world_size == 1:
        return tensor
    whole = tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
    gathered: Tensor = _Gathered.apply(whole)
    return gathered


class _Gathered(torch.autograd.Function):
    """All devices' rows; backwards the sum of all devices' gradients, each device its own rows of it."""

    @staticmethod
    def forward(ctx: Any, tensor: Tensor) -> Tensor:
        parts = [
            torch.empty_like(tensor, memory_format=torch.contiguous_format)
            for _ in range(distributed.get_world_size())
        ]
        distributed.all_gather(parts, tensor.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total.chunk(distributed.get_world_size())[distributed.get_rank()]
