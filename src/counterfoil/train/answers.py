"""Answers of a network to several batches, joined into one."""

from collections.abc import Sequence

import torch
from torch import Tensor

from counterfoil.scorers.networks import Answer, Encoded


def joined(answers: Sequence[Answer], *, image_roles: int, text_roles: int) -> Answer:
    """The answer about the rows of all batches: role after role, each with the rows of the first batch first.

    Gradients flow through. Of several, attention is left out (texts of two batches may be padded to different
    lengths, and no loss looks at it), and what is no row (temperature, scale of matching) is the last one's.
    """
    if len(answers) == 1:
        return answers[0]
    return answers[-1]._replace(
        images=_side([each.images for each in answers], image_roles),
        texts=_side([each.texts for each in answers], text_roles),
    )


def leaves(answer: Answer) -> Answer:
    """The answer cut off from the network, its tensors ready to be given gradients."""

    def leaf(tensor: Tensor | None) -> Tensor | None:
        return None if tensor is None else tensor.detach().requires_grad_()

    images, texts = (Encoded(*map(leaf, side)) for side in (answer.images, answer.texts))
    return Answer(images, texts, answer.logit_scale.detach().requires_grad_(), leaf(answer.match))


def tensors(answer: Answer) -> list[Tensor | None]:
    """All that an answer is made of, in one order."""
    return [*answer.images, *answer.texts, answer.logit_scale, answer.match]


def _side(parts: Sequence[Encoded], roles: int) -> Encoded:
    def field(values: tuple[Tensor | None, ...]) -> Tensor | None:
        rows = [value.unflatten(0, (roles, -1)) for value in values if value is not None]
        return torch.cat(rows, dim=1).flatten(0, 1) if rows else None

    cut = [part._replace(attention=None) for part in parts]
    return Encoded(*map(field, zip(*cut, strict=True)))
