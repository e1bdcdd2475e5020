"""Devices and processes of a training, and one batch out of what several devices hold."""

import atexit
import os
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from torch import Tensor, distributed, nn

from counterfoil.errors import InputError
from counterfoil.scorers.networks import Answer, Network

_PRECISIONS = {"fp32": "32-true", "bf16": "bf16-mixed"}


def launched(device: str, devices: int, precision: str) -> Fabric:
    """A Fabric whose processes all run.

    `device` is "auto" (a GPU where there is one), "cpu", "cuda", "cuda:N" or "mps"; `devices` is how many,
    one process each. Under torchrun its processes are taken as they are. Raises `InputError` for a device
    that is not there.
    """
    kind, _, number = device.partition(":")
    there = {
        "auto": True,
        "cpu": True,
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
    }
    if not there.get(kind) or (number and not (number.isdecimal() and len(number) < 5)):
        allowed = [name for name, is_there in there.items() if is_there]
        raise InputError("no such device to train on", given=device, allowed=allowed)
    if devices < 1:
        raise InputError("number of devices", given=devices, allowed="1 or more")
    gpus = torch.cuda.device_count()
    if (kind == "cuda" or (kind == "auto" and gpus)) and max(devices, int(number or 0) + 1) > gpus:
        raise InputError(
            "not so many GPUs here", given=f"{device}, {devices} devices", allowed=f"{gpus} GPUs"
        )
    processes, nodes = devices, 1
    elastic = torch.distributed.is_available() and torch.distributed.is_torchelastic_launched()
    if elastic:
        # torchrun says through the environment, and in no other way, how many it has started.
        processes = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // processes
    fabric = Fabric(
        accelerator=kind,
        devices=[int(number)] if number and not elastic else processes,
        num_nodes=nodes,
        strategy="ddp" if processes * nodes > 1 else "auto",
        precision=_PRECISIONS[precision],
    )
    fabric.launch()
    if fabric.world_size > 1:
        # Gloo's threads may outlive the interpreter, which then aborts after all work is done.
        atexit.unregister(_part)
        atexit.register(_part)
    return fabric


def _part() -> None:
    """End the connection among the processes."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


_Value = TypeVar("_Value")


def on_first(fabric: Fabric, work: Callable[[], _Value]) -> _Value:
    """What the first process finds, on all of them."""
    found = work() if fabric.is_global_zero else None
    return fabric.broadcast(found)


def of_all(fabric: Fabric, value: Any) -> list[Any]:
    """The values of all processes, in their order."""
    if fabric.world_size == 1:
        return [value]
    values: list[Any] = [None] * fabric.world_size
    torch.distributed.all_gather_object(values, value)
    return values


class WrappedNetwork(nn.Module):
    """A network as Fabric wraps it.

    Parameters that a network hands out as they are (the temperature) leave here as results of a computation:
    hooks that Fabric sets on whatever comes out would otherwise pile up on them, step after step.
    """

    def __init__(self, network: Network) -> None:
        super().__init__()
        self.network = network

    def forward(self, pixels: Tensor, tokens: Tensor) -> Answer:
        """The network's answer."""
        answer: Answer = self.network(pixels, tokens)
        match = None if answer.match is None else answer.match.view_as(answer.match)
        return answer._replace(logit_scale=answer.logit_scale.view(()), match=match)


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
