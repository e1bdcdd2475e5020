"""Optimisation: trained parameters, the learning rate of each step, and devices."""

import atexit
import math
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from torch import nn, optim

from counterfoil.errors import InputError
from counterfoil.models.networks import Network
from counterfoil.train.recipes import Recipe


def learning_rate(step: int, *, recipe: Recipe, total: int) -> float:
    """The learning rate of `step`, counted from 0, in a training of `total` steps.

    Over the first `recipe.warmup` steps it rises linearly to `recipe.lr`. After that "cosine" falls with
    every step, lr (1 + cos(pi (step - warmup) / (total - warmup))) / 2; "cosine-epochs" takes the same curve
    once an epoch (torch's CosineAnnealingLR over epochs); "constant" stays. Source: BiVLC Appendix E.3;
    PCME's code for "cosine-epochs".

    >>> recipe = Recipe("mine", lr=1.0, warmup=2)
    >>> [round(learning_rate(step, recipe=recipe, total=6), 3) for step in range(6)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    """
    if not 0 <= step < total:
        raise InputError("no such step of the training", given=step, allowed=f"0 to {total - 1}")
    if step < recipe.warmup:
        return recipe.lr * (step + 1) / recipe.warmup
    if recipe.schedule == "constant":
        return recipe.lr
    gone, whole = step - recipe.warmup, total - recipe.warmup
    if recipe.schedule == "cosine-epochs":
        # Whole epochs gone; as integers, so that the last bit of a division never decides.
        gone, whole = gone * recipe.epochs // whole, recipe.epochs
    return recipe.lr * 0.5 * (1 + math.cos(math.pi * gone / whole))


#: Parts of names whose parameters never decay, however many dimensions they have.
_NEVER_DECAY = ("bn", "ln", "bias", "logit_scale")


def decays(name: str, parameter: nn.Parameter, recipe: Recipe) -> bool:
    """Whether weight decay pulls at a parameter: under "matrices" as in open_clip and the code of BiVLC."""
    if recipe.decay == "all":
        return True
    return parameter.ndim >= 2 and not any(part in name for part in _NEVER_DECAY)


def trained_parameters(network: Network, recipe: Recipe) -> tuple[tuple[str, nn.Parameter], ...]:
    """The parameters that the recipe trains, with their names, in the network's order."""
    parts = {"all": network.parameters, "projections": network.projections, "heads": network.heads}
    part = tuple(parts[recipe.trains]())
    if not part:
        problem = f"the network has no {recipe.trains} to train"
        hint = 'set trains = "all", or choose another model'
        raise InputError(problem, where=f"recipe {recipe.name}", given=type(network).__name__, hint=hint)
    wanted = {id(parameter) for parameter in part}
    temperature = id(network.logit_scale)
    (wanted.add if recipe.temperature == "trained" else wanted.discard)(temperature)
    return tuple(named for named in network.named_parameters() if id(named[1]) in wanted)


def parameter_groups(network: Network, recipe: Recipe) -> list[dict[str, Any]]:
    """The optimiser's groups: what decays, then what does not; always in the same order, as resuming needs.

    What the recipe does not train is frozen on the way, what it trains is opened.
    """
    named = trained_parameters(network, recipe)
    opened = {id(parameter) for _, parameter in named}
    for parameter in network.parameters():
        parameter.requires_grad_(id(parameter) in opened)
    groups: list[dict[str, Any]] = [
        {"params": [parameter for name, parameter in named if decays(name, parameter, recipe) == pulled]}
        | {"weight_decay": recipe.weight_decay if pulled else 0.0}
        for pulled in (True, False)
    ]
    return [group for group in groups if group["params"]]


def optimiser(groups: list[dict[str, Any]], recipe: Recipe) -> optim.Optimizer:
    """AdamW, Adam or AdamP (timm's) over the groups, with the recipe's learning rate, betas and eps."""
    how: dict[str, Any] = {"lr": recipe.lr, "betas": recipe.betas, "eps": recipe.eps}
    if recipe.optimiser == "adamp":
        from timm.optim import AdamP

        return AdamP(groups, **how)
    return {"adamw": optim.AdamW, "adam": optim.Adam}[recipe.optimiser](groups, **how)


def count(parameters: Sequence[nn.Parameter]) -> int:
    """How many numbers they hold."""
    return sum(parameter.numel() for parameter in parameters)


_PRECISIONS = {"fp32": "32-true", "bf16": "bf16-mixed"}


def launched(device: str, devices: int, precision: str) -> Fabric:
    """A Fabric whose processes all run; under torchrun its processes are taken as they are."""
    kind, _, number = device.partition(":")
    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    allowed = ["auto", "cpu", *(name for name, is_there in there.items() if is_there)]
    if kind not in allowed or (number and not (number.isdecimal() and len(number) < 5)):
        raise InputError("no such device to train on", given=device, allowed=allowed)
    if devices < 1:
        raise InputError("number of devices", given=devices, allowed="1 or more")
    processes, nodes = devices, 1
    elastic = torch.distributed.is_available() and torch.distributed.is_torchelastic_launched()
    if elastic:
        # torchrun says through the environment, and in no other way, how many it has started.
        processes = int(os.environ["LOCAL_WORLD_SIZE"])
        nodes = int(os.environ["WORLD_SIZE"]) // processes
        _end_with_parent()
    gpus = torch.cuda.device_count()
    if (kind == "cuda" or (kind == "auto" and gpus)) and max(processes, int(number or 0) + 1) > gpus:
        given = f"{device}, {processes} devices"
        raise InputError("more GPUs than are here", given=given, allowed=f"{gpus} GPUs")
    chosen = [int(number)] if number and not elastic else processes
    how: Any = {"strategy": "ddp" if processes * nodes > 1 else "auto", "precision": _PRECISIONS[precision]}
    fabric = Fabric(accelerator=kind, devices=chosen, num_nodes=nodes, **how)
    fabric.launch()
    if fabric.world_size > 1:
        # Gloo's threads may outlive the interpreter, which then aborts after all work is done.
        atexit.unregister(_part)
        atexit.register(_part)
    return fabric


def _end_with_parent() -> None:
    """Have this process end when torchrun does, which may be killed: no other may train into its folder."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, name="torchrun is there", daemon=True).start()


def _part() -> None:
    """End the connection among the processes."""
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


_Value = TypeVar("_Value")


def on_first(fabric: Fabric, work: Callable[[], _Value]) -> _Value:
    """What the first process finds, on all of them."""
    result = work() if fabric.is_global_zero else None
    return fabric.broadcast(result)


def largest(fabric: Fabric, value: float) -> float:
    """The largest of the numbers of all processes."""
    return max(of_all(fabric, value))


def of_all(fabric: Fabric, value: Any) -> list[Any]:
    """The values of all processes, in their order."""
    if fabric.world_size == 1:
        return [value]
    values: list[Any] = [None] * fabric.world_size
    torch.distributed.all_gather_object(values, value)
    return values
