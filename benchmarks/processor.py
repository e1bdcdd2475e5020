"""Which precisions this processor can be timed in: bf16 by way of fp32 takes an hour and says nothing."""

import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path

#: Why bf16 is left out.
REASON = "bf16 skipped: this processor has no instructions for it (ask with --precision bf16 all the same)"


def multiplies_bf16() -> bool:
    """Whether the processor multiplies bf16 numbers itself: AMX, AVX-512's instructions, or Arm's."""
    import torch

    if torch.cpu._is_amx_tile_supported() or torch.cpu._is_avx512_bf16_supported():
        return True
    if platform.machine().lower() not in ("aarch64", "arm64"):
        return False
    if platform.system() == "Darwin":
        asked = ["sysctl", "-n", "hw.optional.arm.FEAT_BF16"]
        return subprocess.run(asked, capture_output=True, text=True).stdout.strip() == "1"
    known = Path("/proc/cpuinfo")
    return known.is_file() and " bf16" in known.read_text()


def precisions(asked: Sequence[str] | None, device: str = "cpu") -> list[str]:
    """Those that were asked for; else fp32, and bf16 where it can be timed, or a line that it is skipped."""
    if asked:
        return list(asked)
    if device != "cpu" or multiplies_bf16():
        return ["fp32", "bf16"]
    print(REASON)
    return ["fp32"]
