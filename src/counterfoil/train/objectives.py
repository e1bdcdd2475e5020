"""Objectives: the columns a recipe encodes, and the loss over the network's answer."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from counterfoil.errors import InputError, ModelError
from counterfoil.models import pcme
from counterfoil.models.networks import Answer, Backbone, Encoded
from counterfoil.registry import resolve
from counterfoil.train import losses
from counterfoil.train.recipes import Detection, Polysemous, PositiveAugmented, Probabilistic, Recipe, Triplet

#: The rows of all devices out of those of this one, with gradients.
Gather = Callable[[Tensor], Tensor]
Loss = Float[Tensor, ""]


@dataclass(frozen=True)
class Sides:
    """The network's output for a batch, role by role, with the rows of all devices."""

    images: tuple[Encoded, ...]
    texts: tuple[Encoded, ...]
    #: The inverse temperature, exp(logit_scale).
    scale: Tensor
    match: Tensor | None
    #: For what a loss draws: random, and the same on all devices.
    seed: int
    #: Which of how many devices this is.
    rank: int = 0
    world: int = 1

    def local(self, roles: int = 1) -> losses.Local:
        """The rows of this device among those of `roles` roles one after the other; None: all of them are."""
        if self.world == 1:
            return None
        rows = len(self.images[0].points)
        share = rows // self.world
        mine = torch.arange(self.rank * share, (self.rank + 1) * share, device=self.scale.device)
        return torch.cat([mine + role * rows for role in range(roles)])

    def points(self) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
        """The vectors alone, of each image role and each text role."""
        return tuple(side.points for side in self.images), tuple(side.points for side in self.texts)


@dataclass(frozen=True)
class Objective:
    """The loss of a recipe; `images` and `texts` are the columns it encodes, role after role."""

    images: tuple[str, ...]
    texts: tuple[str, ...]
    loss: Callable[[Sides], tuple[Tensor, Mapping[str, Tensor]]]
    #: Whether the loss draws samples.
    draws: bool = False

    def __call__(
        self, answer: Answer, gather: Gather = lambda rows: rows, *, rank: int = 0, world: int = 1
    ) -> tuple[Loss, Mapping[str, Loss]]:
        """The loss of a batch, to be minimised, and what it is made of where there are several parts.

        `gather` puts the rows of all devices together; of the loss and its parts the mean over devices is
        that of the whole batch. A loss that draws takes its seed from torch's generator on the CPU.
        """
        device = answer.logit_scale.device
        seed = 0
        if self.draws:
            # The first device's next random number: devices must draw the same, as they share one loss.
            drawn = gather(torch.rand(1, dtype=torch.float64).to(device))
            seed = int(drawn[0].item() * 2**53)
        encoded = _roles(answer.images, self.images, gather), _roles(answer.texts, self.texts, gather)
        scale = answer.logit_scale.float().exp()
        sides = Sides(*encoded, scale, answer.match, seed, rank, world)
        # Sums over a batch lose too much in half precision.
        with torch.autocast(device.type, enabled=False):
            loss, parts = self.loss(sides)
        return loss, {name: part.detach() for name, part in parts.items()}


def objective(recipe: Recipe) -> Objective:
    """The objective that `recipe.objective` names. Raises `InputError` for a recipe without one."""
    if not recipe.objective:
        hint = "detectors are trained by train.detectors.fit" if isinstance(recipe, Detection) else None
        given = f"{recipe.name} ({type(recipe).__name__})"
        raise InputError("no loss belongs to this recipe", given=given, hint=hint)
    resolved: Objective = resolve(recipe.objective)(recipe)
    return resolved


def with_heads(backbone: Backbone, recipe: Recipe) -> Backbone:
    """The backbone with the heads on top that the recipe trains; one that has them already is left as it is.

    New heads start from the recipe's seed. Raises `ModelError` for a network with heads of another kind.
    """
    kind = str(backbone.card.get("kind"))
    # The kind of network that a recipe puts on top of a dual encoder.
    heads = {Polysemous: "pvse", Probabilistic: "pcme"}
    wanted = next((name for of_recipe, name in heads.items() if isinstance(recipe, of_recipe)), None)
    if kind == wanted or (kind == "pvse" and isinstance(recipe, Triplet)):
        return backbone
    if kind in ("detector", *heads.values()):
        problem, place = "the recipe is for another kind of model", f"recipe {recipe.name}"
        allowed = f"a dual encoder{f', or one with heads of {wanted}' if wanted else ''}"
        raise ModelError(problem, where=place, given=f"{backbone.name} ({kind})", allowed=allowed)
    if isinstance(recipe, Polysemous):
        return pcme.pvse(backbone, heads=recipe.heads, seed=recipe.seed)
    if isinstance(recipe, Probabilistic):
        return pcme.pcme(backbone, samples=recipe.samples, log_sigma=recipe.log_sigma, seed=recipe.seed)
    return backbone


def _roles(side: Encoded, roles: tuple[str, ...], gather: Gather) -> tuple[Encoded, ...]:
    """The outputs of each role, of all devices; attention is left out, since no loss uses it."""

    def parts(tensor: Tensor | None) -> Any:
        # All roles of a row together, so that devices talk to each other once.
        whole = None if tensor is None else tensor.unflatten(0, (len(roles), -1)).transpose(0, 1)
        return [None] * len(roles) if whole is None else gather(whole).unbind(1)

    sides = zip(parts(side.points), parts(side.log_variance), parts(side.residuals), strict=True)
    return tuple(Encoded(points, spread, None, residuals) for points, spread, residuals in sides)


def contrastive(recipe: Recipe) -> Objective:
    """InfoNCE over images and captions, the recipe's negatives among them (CLIP, NegCLIP, BiVLC's TROHN)."""
    negative_images = [role for role in recipe.needs if role.endswith("image")]
    negative_texts = [role for role in recipe.needs if role.endswith("caption")]

    def loss(sides: Sides) -> tuple[Tensor, Mapping[str, Tensor]]:
        images, texts = (side[0] if len(side) == 1 else torch.cat(side) for side in sides.points())
        return losses.info_nce(images, texts, sides.scale, sides.local(roles=len(sides.images))), {}

    return Objective(("image", *negative_images), ("caption", *negative_texts), loss)


def positive_augmented(recipe: PositiveAugmented) -> Objective:
    """InfoNCE with generated images and captions as further positives (PAC-S)."""

    weights: dict[str, Any] = {"lambda_v": recipe.lambda_v, "lambda_t": recipe.lambda_t}
    weights["halved"] = recipe.directions == "mean"

    def loss(sides: Sides) -> tuple[Tensor, Mapping[str, Tensor]]:
        (images, generated_images), (texts, generated_texts) = sides.points()
        roles = images, texts, generated_images, generated_texts
        return losses.positive_augmented(*roles, sides.scale, local=sides.local(), **weights), {}

    return Objective(("image", "generated_image"), ("caption", "generated_caption"), loss)


def triplet(recipe: Triplet) -> Objective:
    """A hinge on similarities over mined negatives (VSE0, VSE++)."""

    how: dict[str, Any] = {name: getattr(recipe, name) for name in ("margin", "mining", "reduction")}

    def loss(sides: Sides) -> tuple[Tensor, Mapping[str, Tensor]]:
        (images,), (texts,) = sides.points()
        own_rows = sides.local()
        return losses.triplet(*losses.both_ways(images, texts, own_rows), local=own_rows, **how), {}

    return Objective(("image",), ("caption",), loss)


def polysemous(recipe: Polysemous) -> Objective:
    """The hinge, diversity of the vectors of an item, and MMD between modalities (PVSE)."""
    hinge_of = triplet(recipe).loss

    def loss(sides: Sides) -> tuple[Tensor, Mapping[str, Tensor]]:
        (images,), (texts,) = sides.images, sides.texts
        if images.residuals is None or texts.residuals is None:
            raise _lacks("several vectors per item", recipe)
        hinge, _ = hinge_of(sides)
        own_rows = sides.local()
        residuals = images.residuals, texts.residuals
        diversity = sum(losses.diversity(rows if own_rows is None else rows[own_rows]) for rows in residuals)
        together = losses.mmd(images.points, texts.points, kernel=recipe.kernel, local=own_rows)
        whole = hinge + recipe.diversity * diversity + recipe.mmd * together
        return whole, {"hinge": hinge, "diversity": diversity, "mmd": together}

    return Objective(("image",), ("caption",), loss)


def probabilistic(recipe: Probabilistic) -> Objective:
    """The soft contrastive loss of matching probabilities, and a KL term (PCME)."""

    how: dict[str, Any] = {name: getattr(recipe, name) for name in ("samples", "information", "reduction")}
    how["vib"] = recipe.vib_beta

    def loss(sides: Sides) -> tuple[Tensor, Mapping[str, Tensor]]:
        (images,), (texts,) = sides.images, sides.texts
        if images.log_variance is None or texts.log_variance is None or sides.match is None:
            raise _lacks("a variance per item", recipe)
        items = images.points, images.log_variance, texts.points, texts.log_variance
        how["generator"] = torch.Generator().manual_seed(sides.seed)
        matching = losses.soft_contrastive(*items, sides.match, local=sides.local(), **how)
        return matching.loss, {"matching": matching.matching, "information": matching.information}

    return Objective(("image",), ("caption",), loss, draws=True)


def _lacks(what: str, recipe: Recipe) -> ModelError:
    return ModelError(
        f"the network does not give {what}",
        where=f"recipe {recipe.name}",
        hint="put heads on top of it with train.objectives.with_heads",
    )
