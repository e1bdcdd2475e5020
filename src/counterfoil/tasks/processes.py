"""World size and main-process check of a training."""

import os


def main_process() -> bool:
    """Whether this process is the one that prints: of several that torchrun or Fabric started, the first."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK"))


def processes(devices: int) -> int:
    """How many processes train on this machine: as many as torchrun started, where it did."""
    started = os.environ.get("LOCAL_WORLD_SIZE") if "TORCHELASTIC_RUN_ID" in os.environ else None
    return int(started) if started is not None else devices
