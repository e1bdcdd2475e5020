"""One batch out of what several devices hold, with gradients: every negative counts everywhere."""

from lightning_fabric import Fabric
from torch import Tensor


def gather(tensor: Tensor, fabric: Fabric | None) -> Tensor:
    """The rows of all devices, those of the first device first; on one device the tensor itself.

    All devices compute the same loss of the same gathered rows. Backwards, each gets for its own rows the
    sum of what all of them say, which is their number times the gradient; where gradients of weights are
    then averaged over devices, as `DistributedDataParallel` does, that is exactly the gradient of one device
    with the whole batch, for weights of the loss itself (the temperature) too. Nothing is to be scaled.

    Devices must hold the same number of rows: otherwise they wait for each other forever.
    """
    if fabric is None or fabric.world_size == 1:
        return tensor
    gathered: Tensor = fabric.all_gather(tensor, sync_grads=True)
    return gathered.flatten(0, 1)
