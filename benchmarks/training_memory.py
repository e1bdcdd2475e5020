"""What one step of ViT-B-32 holds in memory, whole and in chunks (GradCache).

    python benchmarks/training_memory.py [--batch 400] [--chunk 50]

Bytes that an image and a caption leave for the backward pass are counted on the processor, in fp32 and in
bf16. Computed from them is a step of `trohn-img`, two images and two captions per row, on a GPU. Assumed:
weights, gradients and both moments of AdamW take 16 bytes per parameter, and autocast's copies two more.
What comes on top is not in the numbers: buffers within one operation, what an allocator loses between
blocks, and about 0.5 GB of CUDA's own.
"""

import argparse

import torch

from counterfoil.models import registry
from counterfoil.models.networks import Network
from counterfoil.train.optim import count

ARCHITECTURE = "ViT-B-32"
ITEMS = 2


def kept(network: Network, tower: str, *, bf16: bool) -> float:
    """Bytes that one item leaves for the backward pass, weights not counted."""
    own = {each.untyped_storage().data_ptr() for each in network.parameters()}
    shapes = {tuple(each.shape) for each in network.parameters()}
    shapes |= {shape[::-1] for shape in shapes if len(shape) == 2}
    found: dict[int, int] = {}

    def keep(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        # Autocast keeps weights in bf16 too: they are counted once, not for each item.
        if storage.data_ptr() not in own and tuple(tensor.shape) not in shapes:
            found[storage.data_ptr()] = storage.nbytes()
        return tensor

    with (
        torch.autograd.graph.saved_tensors_hooks(keep, lambda each: each),
        torch.autocast("cpu", dtype=torch.bfloat16, enabled=bf16),
    ):
        if tower == "images":
            answer = network.encode_images(torch.rand(ITEMS, 3, 224, 224))
        else:
            answer = network.encode_texts(torch.randint(1, 40000, (ITEMS, 77)))
    assert answer.points.requires_grad
    return sum(found.values()) / ITEMS


def main() -> None:
    """Print what was counted, and the table that is computed from it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--batch", type=int, default=400)
    parser.add_argument("--chunk", type=int, default=50)
    asked = parser.parse_args()
    torch.manual_seed(0)
    network = registry.backbone(f"open-clip:{ARCHITECTURE}").network.train()
    parameters = count(tuple(network.parameters()))
    print(f"{ARCHITECTURE}: {parameters / 1e6:.0f} million parameters")
    for bf16 in (False, True):
        fixed = (18 if bf16 else 16) * parameters
        item = 2 * sum(kept(network, tower, bf16=bf16) for tower in ("images", "texts"))
        sizes = [(fixed + rows * item) / 1e9 for rows in (asked.batch, asked.chunk)]
        print(
            f"{'bf16' if bf16 else 'fp32'}: {item / 1e6:.1f} MB a row; batch {asked.batch}: "
            f"{sizes[0]:.1f} GB, in chunks of {asked.chunk}: {sizes[1]:.1f} GB"
        )


if __name__ == "__main__":
    main()
