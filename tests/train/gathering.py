"""One of several processes that train as one: its share of a batch, gathered, and the gradients it ends with.

Run as a script by the test of `counterfoil.train.optim`, with a world size, a rank, a port and a file.
"""

import os
import sys
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor, nn  # noqa: E402

from counterfoil.train import losses  # noqa: E402
from counterfoil.train.losses import soft_contrastive  # noqa: E402

ROWS, INPUTS, WIDTH = 6, 5, 4
Sides = tuple[Tensor, Tensor, Tensor, Tensor]


class Towers(nn.Module):
    """Two linear towers, a temperature and a scale of matching, all of which every loss here uses."""

    def __init__(self) -> None:
        super().__init__()
        generator = torch.Generator().manual_seed(0)
        self.images, self.texts = (
            nn.Parameter(torch.randn((INPUTS, 2 * WIDTH), generator=generator, dtype=torch.float64))
            for _ in range(2)
        )
        self.logit_scale = nn.Parameter(torch.tensor(1.5, dtype=torch.float64))
        self.match = nn.Parameter(torch.tensor([2.0, 3.0], dtype=torch.float64))

    def forward(self, images: Tensor, texts: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """What a loss is of."""
        return images @ self.images, texts @ self.texts, self.logit_scale, self.match


def roles(features: Tensor, gather: Callable[[Tensor], Tensor]) -> list[Tensor]:
    """Positives and negatives, each of all devices."""
    return [gather(part) for part in features.chunk(2)]


def info_nce(answer: Sides, gather: Callable[[Tensor], Tensor]) -> Tensor:
    images, texts, logit_scale, match = answer
    own = losses.info_nce(roles(images, gather)[0], roles(texts, gather)[0], logit_scale.exp())
    return own + 0 * match.sum()


def negative_texts(answer: Sides, gather: Callable[[Tensor], Tensor]) -> Tensor:
    images, texts, logit_scale, match = answer
    every = torch.cat(roles(texts, gather))
    return losses.with_negative_texts(roles(images, gather)[0], every, logit_scale.exp()) + 0 * match.sum()


def negative_pairs(answer: Sides, gather: Callable[[Tensor], Tensor]) -> Tensor:
    images, texts, logit_scale, match = answer
    sides = torch.cat(roles(images, gather)), torch.cat(roles(texts, gather))
    return losses.with_negative_pairs(*sides, logit_scale.exp()) + 0 * match.sum()


def hardest(answer: Sides, gather: Callable[[Tensor], Tensor]) -> Tensor:
    images, texts, logit_scale, match = answer
    scores = losses.similarity(roles(images, gather)[0], roles(texts, gather)[0])
    return losses.triplet(scores, margin=0.5) + 0 * match.sum() + 0 * logit_scale


def soft(answer: Sides, gather: Callable[[Tensor], Tensor]) -> Tensor:
    images, texts, logit_scale, match = answer
    image, text = roles(images, gather)[0], roles(texts, gather)[0]
    found = soft_contrastive(
        image[:, :WIDTH],
        image[:, WIDTH:],
        text[:, :WIDTH],
        text[:, WIDTH:],
        match,
        generator=torch.Generator().manual_seed(3),
        vib=0.1,
    )
    return found.loss + 0 * logit_scale


LOSSES: Mapping[str, Callable[[Sides, Callable[[Tensor], Tensor]], Tensor]] = {
    "info_nce": info_nce,
    "negative texts": negative_texts,
    "negative pairs": negative_pairs,
    "hardest": hardest,
    "soft contrastive": soft,
}


def batch(world: int, rank: int) -> tuple[Tensor, Tensor]:
    """The share of a rank: its part of the positives, then the same part of the negatives."""
    generator = torch.Generator().manual_seed(1)
    sides = []
    for _ in range(2):
        whole = torch.randn((2, ROWS, INPUTS), generator=generator, dtype=torch.float64)
        sides.append(whole.chunk(world, dim=1)[rank].reshape(-1, INPUTS))
    return sides[0], sides[1]


def gradients(
    name: str, module: nn.Module, world: int, rank: int, gather: Callable[[Tensor], Tensor]
) -> list:
    """The loss, then the gradient of each parameter, after one backward pass."""
    module.zero_grad()
    loss = LOSSES[name](module(*batch(world, rank)), gather)
    loss.backward()
    return [loss.detach(), *(parameter.grad.clone() for parameter in module.parameters())]


def main(world: int, rank: int, port: int, out: str) -> None:
    """Each loss under `DistributedDataParallel`; what came of it goes to `out`."""
    from lightning_fabric import Fabric
    from torch.nn.parallel import DistributedDataParallel

    from counterfoil.train.optim import gather

    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port), WORLD_SIZE=str(world), RANK=str(rank),
        LOCAL_RANK=str(rank), LOCAL_WORLD_SIZE=str(world), GROUP_RANK="0", TORCHELASTIC_RUN_ID="gather",
    )  # fmt: skip
    from lightning_fabric.strategies import DDPStrategy

    strategy = DDPStrategy(process_group_backend="gloo", timeout=timedelta(seconds=60))
    fabric = Fabric(accelerator="cpu", devices=world, strategy=strategy)
    fabric.launch()
    module = DistributedDataParallel(Towers())
    found = {name: gradients(name, module, world, rank, lambda t: gather(t, fabric)) for name in LOSSES}
    found["half"] = gather(torch.full((2, 3), rank + 0.5, dtype=torch.bfloat16), fabric)
    torch.save(found, Path(out))
    fabric.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
