"""Gradients of a step, by `train.gradients` and by a twin that holds the graph of all rows at once.

As a script, `whole_batches.py WORLD PORT FOLDER`, processes that train as one (without `torchrun`): all
cases, a share of the rows each, and the gradients that they end with. They are forks of one that has loaded
what they need.
"""

import os
import sys
from dataclasses import replace
from datetime import timedelta
from functools import lru_cache
from itertools import product
from pathlib import Path

import numpy as np
import torch
from lightning_fabric import Fabric
from lightning_fabric.strategies import DDPStrategy

import thumbnails
from counterfoil.models.networks import Answer, Encoded
from counterfoil.train.dataloaders import Batch
from counterfoil.train.gradients import WrappedNetwork, chunks, gather, gradients
from counterfoil.train.loop import fit
from counterfoil.train.objectives import objective, with_heads
from counterfoil.train.optim import parameter_groups
from counterfoil.train.recipes import RECIPES, read

ROWS = 12
#: Spreads wide enough for what is drawn to matter, a KL term that can be seen, a margin that is met.
CHANGED = {"pcme": {"log_sigma": -1.0, "vib_beta": 0.1}, "vse++": {"margin": 0.9}}
#: Every recipe with a loss of batches, and what else their losses can be set to.
CASES = {name: (name, CHANGED.get(name, {})) for name in RECIPES if name != "detector"} | {
    "vse0 semi-hard": ("vse0", {"margin": 0.9, "mining": "semi-hard", "reduction": "mean"}),
    "pvse distance": ("pvse", {"kernel": "distance", "mmd": 0.5, "mining": "sum"}),
    "pcme exact": ("pcme", {**CHANGED["pcme"], "information": "exact", "reduction": "mean"}),
    "pac mean": ("pac", {"directions": "mean", "temperature": "trained"}),
}
#: Rows that go through the network at a time: all six of a process, and parts that do not divide them.
CHUNKS = (None, 4)


def made(case, *, dropout):
    """The network of a case in double precision, everything open that its recipe trains in any stage."""
    name, changed = CASES[case]
    recipe = replace(read(name, **changed).staged()[-1], trains="all")
    backbone = with_heads(thumbnails.thumb(dropout=dropout), recipe)
    backbone.network.double().train()
    parameter_groups(backbone.network, recipe)
    return recipe, backbone, objective(recipe)


def batch(aim, rows):
    """The rows as a feed makes them: role after role. Texts of different batches differ in length."""
    return _batch(aim.images, aim.texts, tuple(rows.tolist()))


@lru_cache
def _batch(image_roles, text_roles, at):
    rows = np.array(at)
    data = thumbnails.rows(ROWS, negatives=True)
    columns = {**data.rows}
    for kind in ("image", "caption"):
        columns[f"generated_{kind}"] = columns[f"negative_{kind}"][::-1]
    images = [data.images[i] for role in image_roles for i in columns[role][rows]]
    texts = [data.captions[i].text or "" for role in text_roles for i in columns[role][rows]]
    pixels = thumbnails.pixels([thumbnails.Shrunk()(image.decode()) for image in images])
    return Batch(0, rows, pixels.double(), thumbnails.tokens(texts))


def shares(aim, *, world, accumulate):
    """The batches of each process, in the order of the rows."""
    own = np.split(np.arange(ROWS), world)
    return [[batch(aim, rows) for rows in np.split(item, accumulate)] for item in own]


def grads(backbone):
    named = backbone.network.named_parameters()
    return {name: item.grad.clone() for name, item in named if item.grad is not None}


def by_steps(backbone, aim, batches, *, fabric, chunk=None):
    """What `gradients` finds, with torch's generator at one place of each process at the start."""
    model = fabric.setup_module(WrappedNetwork(backbone.network))
    backbone.network.zero_grad()
    torch.manual_seed(5 + fabric.global_rank)
    said = gradients(model, aim, batches, fabric=fabric, chunk=chunk)
    return {name: value.item() for name, value in said.items()}, grads(backbone)


def in_one_graph(backbone, aim, all_batches, *, chunk=None):
    """The twin: all parts of all processes forward with their graphs, put together by hand, one backward."""
    backbone.network.zero_grad()
    answers, after = [], torch.get_rng_state()
    for rank, batches in enumerate(all_batches):
        torch.manual_seed(5 + rank)
        for item in batches:
            answers += [backbone.network(part.pixels, part.tokens) for part in chunks(item, aim, chunk)]
        after = torch.get_rng_state() if rank == 0 else after
    # The loss draws from the first process's generator.
    torch.set_rng_state(after)

    def side(which, roles):
        def together(field):
            result = [getattr(getattr(answer, which), field) for answer in answers]
            if field == "attention" or result[0] is None:
                return None
            n = [len(item) // roles for item in result]
            return torch.cat(
                [item[r * k : (r + 1) * k] for r in range(roles) for item, k in zip(result, n, strict=True)]
            )

        return Encoded(*(together(field) for field in Encoded._fields))

    images, texts = side("images", len(aim.images)), side("texts", len(aim.texts))
    loss, result = aim(Answer(images, texts, answers[0].logit_scale, answers[0].match))
    loss.backward()
    return {"loss": loss.item(), **{name: part.item() for name, part in result.items()}}, grads(backbone)


def apart(left, right):
    """The largest relative error of a parameter's gradient, as a whole; infinite where one is lacking."""
    if left.keys() != right.keys():
        return float("inf")
    size = max(float(item.norm()) for item in right.values())
    return max(
        float((left[name] - right[name]).norm()) / max(float(right[name].norm()), 1e-6 * size)
        for name in right
    )


def trained():
    """The weights, the journal and the step of a short training, which several processes share."""
    recipe = RECIPES["trohn-img"]
    recipe = replace(recipe, batch_size=8, steps=7, lr=3e-3, warmup=2, accumulate=2, validate_every=3)
    backbone, data = thumbnails.thumb(dropout=0.0), thumbnails.rows(40, negatives=True)
    held = thumbnails.rows(21, seed=1, negatives=True)
    result = fit(backbone, replace(recipe, clip_norm=1.0), data, validation=held, device="cpu")
    return backbone.network.state_dict(), list(result.history), result.step


def main(world, out):
    """A training and all cases with dropout, as one of `world` processes; what came of them goes to `out`."""
    training = trained()
    strategy = DDPStrategy(process_group_backend="gloo", timeout=timedelta(seconds=60))
    fabric = Fabric(accelerator="cpu", devices=world, strategy=strategy)
    fabric.launch()
    result: dict = {"training": training}
    for case, chunk in product(CASES, CHUNKS):
        _, backbone, aim = made(case, dropout=0.3)
        mine = shares(aim, world=world, accumulate=1)[fabric.global_rank]
        result[case, chunk] = by_steps(backbone, aim, mine, fabric=fabric, chunk=chunk)
    result["half"] = gather(torch.full((2, 3), fabric.global_rank + 0.5, dtype=torch.bfloat16), fabric)
    torch.save(result, Path(out))
    fabric.barrier()
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    size, port, folder = sys.argv[1:]
    torch.set_num_threads(1)
    ranks = range(int(size))
    # The last of them is this process.
    rank = next((rank for rank in ranks[:-1] if os.fork() == 0), ranks[-1])
    os.environ.update(
        MASTER_ADDR="127.0.0.1", MASTER_PORT=port, WORLD_SIZE=size, RANK=str(rank), LOCAL_RANK=str(rank),
        LOCAL_WORLD_SIZE=size, GROUP_RANK="0", TORCHELASTIC_RUN_ID="whole-batches",
    )  # fmt: skip
    main(int(size), Path(folder) / f"{rank}.pt")
    if rank == ranks[-1]:
        for _ in ranks[:-1]:
            assert os.wait()[1] == 0
