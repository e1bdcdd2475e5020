"""The gradients of one step: of a batch, or of several that count as one large batch (GradCache).

A contrastive loss needs the whole batch at once, which may not fit into memory. Its gradient with respect to
the embeddings does, and the towers need nothing else of the other batches (Gao et al. 2021, Scaling Deep
Contrastive Learning Batch Size under Memory Limited Setup, section 3.2).
"""

from collections.abc import Callable, Sequence

import torch
from lightning_fabric import Fabric
from torch import Tensor, nn

from counterfoil.scorers.networks import Answer, Encoded
from counterfoil.train.dataloaders import Batch
from counterfoil.train.objectives import Objective
from counterfoil.train.state import random_state, set_random_state


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
