"""The gradients of a step, exact for losses of a whole batch, in the memory of a part of it.

A contrastive loss needs the whole batch at once, which may not fit into memory. Its gradient with respect to
the embeddings does, and the towers need nothing else of the other rows (GradCache: Gao et al. 2021,
Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup, section 3.2).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

import torch
from lightning_fabric import Fabric
from torch import Tensor, distributed, nn

from counterfoil.errors import InputError
from counterfoil.models.networks import Answer, Encoded, Network
from counterfoil.train.dataloaders import Batch
from counterfoil.train.objectives import Objective
from counterfoil.train.state import random_state, set_random_state


@dataclass(frozen=True)
class Computing:
    """How the steps of a training are computed; their gradients are the same whatever it says."""

    devices: int = 1
    #: Rows of a batch that go through the network at a time, on each device; None: all of them.
    chunk_size: int | None = None


ONE_DEVICE = Computing()


class WrappedNetwork(nn.Module):
    """A network as Fabric wraps it.

    Parameters that a network hands out as they are (the temperature) leave here as results of a computation:
    hooks that Fabric sets on what comes out would otherwise pile up on them.
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

    Backwards each device gets for its own rows the sum of what all say. Where gradients of weights are then
    averaged, as DDP does, that is the gradient of one device with the whole batch: nothing is to be scaled.
    Half precision is gathered as float32. Devices must hold the same number of rows, else they wait forever.
    """
    if fabric is None or fabric.world_size == 1:
        return tensor
    whole = tensor.float() if tensor.dtype in (torch.float16, torch.bfloat16) else tensor
    gathered: Tensor = fabric.all_gather(whole, sync_grads=True)
    return gathered.flatten(0, 1)


def gradients(
    model: nn.Module, aim: Objective, batches: Sequence[Batch], *, fabric: Fabric, chunk: int | None = None
) -> dict[str, Tensor]:
    """Add the gradient of the loss of all `batches` to that of the parameters; the loss and its parts.

    Several batches, or `chunk` rows of each at a time, go forward without a graph; the loss is that of all
    their embeddings; then each goes forward again, with the same random numbers, and backward from the
    gradients of its embeddings, in about 4/3 of the time. Batch norms see one chunk, and count it once.
    """
    place = {"rank": fabric.global_rank, "world": fabric.world_size}
    together = partial(gather, fabric=fabric)
    batches = [piece for batch in batches for piece in chunks(batch, aim, chunk)]
    if len(batches) == 1:
        loss, parts = aim(answer_of(model, batches[0], fabric.device), together, **place)
        fabric.backward(loss)
        return _of_all(fabric, {"loss": loss.detach(), **parts})

    drawn, answers = [], []
    with torch.no_grad(), _uncounted(model):
        for batch in batches:
            drawn.append(random_state())
            answers.append(leaves(answer_of(model, batch, fabric.device)))
    whole = joined(answers, image_roles=len(aim.images), text_roles=len(aim.texts))
    loss, parts = aim(whole, together, **place)
    fabric.backward(loss)
    after = random_state()
    for turn, (batch, state, answer) in enumerate(zip(batches, drawn, answers, strict=True), start=1):
        set_random_state(state)
        with fabric.no_backward_sync(model, enabled=turn < len(batches)):
            pairs = zip(tensors(answer_of(model, batch, fabric.device)), tensors(answer), strict=True)
            # A sum whose gradient with respect to each value is the one that was kept.
            products = [
                (value * leaf.grad).sum()
                for value, leaf in pairs
                if value is not None and leaf is not None and leaf.grad is not None
            ]
            fabric.backward(torch.stack(products).sum())
    # The next step draws what comes after the loss's own numbers.
    set_random_state(after)
    return _of_all(fabric, {"loss": loss.detach(), **parts})


def chunks(batch: Batch, aim: Objective, rows: int | None) -> Iterator[Batch]:
    """The batch in parts of `rows` of its rows, each with all its roles; None leaves it whole."""
    if rows is None or rows >= len(batch.rows):
        yield batch
        return

    def cut(tensor: Tensor, roles: Sequence[str], start: int) -> Tensor:
        return tensor.unflatten(0, (len(roles), -1))[:, start : start + rows].flatten(0, 1)

    for start in range(0, len(batch.rows), rows):
        pixels, tokens = cut(batch.pixels, aim.images, start), cut(batch.tokens, aim.texts, start)
        yield Batch(batch.epoch, batch.rows[start : start + rows], pixels, tokens)


def check_chunk(chunk: int | None, batch_size: int, processes: int, *, hint: str | None = None) -> None:
    """Raise `InputError` for a chunk that is larger than what one process has of a batch."""
    share = batch_size // processes
    if chunk is not None and not 1 <= chunk <= share:
        on = f" on each process ({batch_size} on {processes})" if processes > 1 else ""
        given, allowed = f"{chunk} rows, of {share}{on}", f"1 to {share}"
        raise InputError("a chunk is a part of a batch", given=given, allowed=allowed, hint=hint)


def _of_all(fabric: Fabric, values: dict[str, Tensor]) -> dict[str, Tensor]:
    """The means over devices, each of which has the loss of its own rows."""
    if fabric.world_size == 1:
        return values
    stacked = torch.stack([value.detach() for value in values.values()])
    distributed.all_reduce(stacked)
    return dict(zip(values, stacked / fabric.world_size, strict=True))


def answer_of(model: nn.Module, batch: Batch, device: torch.device) -> Answer:
    """The network's answer to a batch, on the device."""
    pixels, tokens = (side.to(device, non_blocking=True) for side in (batch.pixels, batch.tokens))
    answer: Answer = model(pixels, tokens)
    return answer


def joined(answers: Sequence[Answer], *, image_roles: int, text_roles: int) -> Answer:
    """The answers to several batches as one: role after role, each with the rows of the first batch first.

    Of several batches attention is left out, and values without rows are those of the last batch.
    """
    if len(answers) == 1:
        return answers[0]
    images, texts = ([getattr(answer, side) for answer in answers] for side in ("images", "texts"))
    return answers[-1]._replace(images=_side(images, image_roles), texts=_side(texts, text_roles))


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


@contextmanager
def _uncounted(module: nn.Module) -> Iterator[None]:
    """Batch norms see batches that they are to count later."""
    buffers = [(buffer, buffer.clone()) for buffer in module.buffers()]
    try:
        yield
    finally:
        for buffer, before in buffers:
            buffer.copy_(before)
