"""Optimisation: trained parameters, the learning rate of each step, devices, and the gradients of a step.

A contrastive loss needs the whole batch at once, which may not fit into memory. Its gradient with respect to
the embeddings does, and the towers need nothing else of the other batches (GradCache: Gao et al. 2021,
Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, section 3.2).
"""

import atexit
import math
import os
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from lightning_fabric import Fabric
from torch import Tensor, distributed, nn, optim

from counterfoil.errors import InputError
from counterfoil.scorers.networks import Answer, Encoded, Network
from counterfoil.train.dataloaders import Batch
from counterfoil.train.objectives import Objective
from counterfoil.train.recipes import Recipe
from counterfoil.train.state import random_state, set_random_state


def learning_rate(step: int, *, recipe: Recipe, total: int) -> float:
    """The learning rate of `step`, counted from 0, in a training of `total` steps.

    Over the first `recipe.warmup` steps it rises linearly to `recipe.lr`, which the last of them has:
    lr (step + 1) / warmup. After that "cosine" falls with every step,
    lr (1 + cos(pi (step - warmup) / (total - warmup))) / 2, which would be 0 at step `total`; "cosine-epochs"
    takes the same curve once an epoch (torch's CosineAnnealingLR over epochs); "constant" stays. Source:
    BiVLC Appendix E.3, whose code counts the steps so; PCME's code for "cosine-epochs".

    Raises `InputError` for a step outside the training.

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
    """Whether weight decay pulls at a parameter.

    Under "matrices" it does where the parameter has two dimensions or more and its name contains none of bn,
    ln, bias and logit_scale (as open_clip and the code of BiVLC have it); under "all" always.
    """
    if recipe.decay == "all":
        return True
    return parameter.ndim >= 2 and not any(part in name for part in _NEVER_DECAY)


def trained_parameters(network: Network, recipe: Recipe) -> tuple[tuple[str, nn.Parameter], ...]:
    """The parameters that the recipe trains, with their names, in the network's order.

    The temperature is trained beside them unless the recipe keeps it fixed. Raises `InputError` where the
    recipe trains a part that the network does not have.
    """
    wanted = {id(parameter) for parameter in _wanted(network, recipe)}
    temperature = id(network.logit_scale)
    (wanted.add if recipe.temperature == "trained" else wanted.discard)(temperature)
    return tuple((name, each) for name, each in network.named_parameters() if id(each) in wanted)


def parameter_groups(network: Network, recipe: Recipe) -> list[dict[str, Any]]:
    """The optimiser's groups: what decays, then what does not; a group without parameters is left out.

    Everything the recipe does not train is frozen on the way (`requires_grad` is False), and what it trains
    is opened, so that a second stage may train what the first one froze. The same network and recipe always
    give the same groups in the same order, as resuming needs.
    """
    named = trained_parameters(network, recipe)
    opened = {id(parameter) for _, parameter in named}
    for parameter in network.parameters():
        parameter.requires_grad_(id(parameter) in opened)
    groups: list[dict[str, Any]] = [
        {
            "params": [parameter for name, parameter in named if decays(name, parameter, recipe)],
            "weight_decay": recipe.weight_decay,
        },
        {
            "params": [parameter for name, parameter in named if not decays(name, parameter, recipe)],
            "weight_decay": 0.0,
        },
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


def _wanted(network: Network, recipe: Recipe) -> Sequence[nn.Parameter]:
    if recipe.trains == "all":
        return tuple(network.parameters())
    part = network.projections() if recipe.trains == "projections" else network.heads()
    if not part:
        raise InputError(
            f"the network has no {recipe.trains} to train",
            where=f"recipe {recipe.name}",
            given=type(network).__name__,
            hint='set trains = "all", or choose another model',
        )
    return tuple(part)


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


def gradients(
    model: nn.Module,
    aim: Objective,
    batches: Sequence[Batch],
    *,
    fabric: Fabric,
    gather: Callable[[Tensor], Tensor],
) -> dict[str, Tensor]:
    """Add the gradient of the loss of all `batches` together to that of the model's parameters.

    Returns the scalars `loss` and its parts. `model` is a network as Fabric wraps it.

    One batch goes forward and backward. Several go forward without a graph; the loss is that of all their
    embeddings; then each batch goes forward again, with the random numbers of the first time (dropout), and
    backward from the gradients of its embeddings. That is the gradient of one step with all rows up to
    rounding, for every loss of embeddings, in the memory of one batch and about 4/3 of the time. Layers that
    look at the other rows of a batch (batch norm) see those of one of `batches`, and count them once.
    """
    if len(batches) == 1:
        loss, parts = aim(_answer(model, batches[0], fabric), gather)
        fabric.backward(loss)
        return {"loss": loss.detach(), **parts}

    buffers = [buffer.clone() for buffer in model.buffers()]
    drawn, said = [], []
    with torch.no_grad():
        for batch in batches:
            drawn.append(random_state())
            said.append(leaves(_answer(model, batch, fabric)))
        for buffer, before in zip(model.buffers(), buffers, strict=True):
            buffer.copy_(before)
    whole = joined(said, image_roles=len(aim.images), text_roles=len(aim.texts))
    loss, parts = aim(whole, gather)
    fabric.backward(loss)
    after = random_state()
    for turn, (batch, state, kept) in enumerate(zip(batches, drawn, said, strict=True), start=1):
        set_random_state(state)
        with fabric.no_backward_sync(model, enabled=turn < len(batches)):
            pairs = zip(tensors(_answer(model, batch, fabric)), tensors(kept), strict=True)
            # A sum whose gradient with respect to each value is the one that was kept.
            products = [
                (value * leaf.grad).sum()
                for value, leaf in pairs
                if value is not None and leaf is not None and leaf.grad is not None
            ]
            fabric.backward(torch.stack(products).sum())
    # The next step draws what comes after the loss's own numbers.
    set_random_state(after)
    return {"loss": loss.detach(), **parts}


def _answer(model: nn.Module, batch: Batch, fabric: Fabric) -> Answer:
    pixels = batch.pixels.to(fabric.device, non_blocking=True)
    tokens = batch.tokens.to(fabric.device, non_blocking=True)
    found: Answer = model(pixels, tokens)
    return found


def joined(answers: Sequence[Answer], *, image_roles: int, text_roles: int) -> Answer:
    """The answers to several batches as one: role after role, each with the rows of the first batch first.

    Gradients flow through. Of several batches attention is left out (texts of two batches may be padded to
    different lengths, and no loss uses it), and values without rows (temperature, scale of matching) are
    those of the last batch.
    """
    if len(answers) == 1:
        return answers[0]
    return answers[-1]._replace(
        images=_side([each.images for each in answers], image_roles),
        texts=_side([each.texts for each in answers], text_roles),
    )


def leaves(answer: Answer) -> Answer:
    """The answer detached from the network, its tensors ready to receive gradients."""

    def leaf(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.detach().requires_grad_()

    images, texts = (Encoded(*map(leaf, side)) for side in (answer.images, answer.texts))
    return Answer(images, texts, answer.logit_scale.detach().requires_grad_(), leaf(answer.match))


def tensors(answer: Answer) -> list[Tensor | None]:
    """The tensors of an answer, in a fixed order."""
    return [*answer.images, *answer.texts, answer.logit_scale, answer.match]


def _side(parts: Sequence[Encoded], roles: int) -> Encoded:
    def field(values: tuple[Tensor | None, ...]) -> Tensor | None:
        rows = [value.unflatten(0, (roles, -1)) for value in values if value is not None]
        return torch.cat(rows, dim=1).flatten(0, 1) if rows else None

    cut = [part._replace(attention=None) for part in parts]
    return Encoded(*map(field, zip(*cut, strict=True)))
