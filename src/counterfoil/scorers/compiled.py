"""An image tower as one program (`torch.compile`), for batches of one size, checked against the tower itself.

Compiling fuses operations and so rounds in other places; the first batch is computed both ways, and a program
that does not agree is refused. A smaller batch is filled up, since another size would be compiled anew.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from counterfoil.errors import InputError, ModelError
from counterfoil.scorers.runtime import causes

#: Largest difference allowed between unit vectors of a library's towers and of what replaces them, by
#: precision.
TOLERANCE = {"fp32": 1e-4, "bf16": 0.05, "fp16": 0.01}


class CompiledTower:
    """(batch, 3, height, width) pixels to (batch, width) features, by a program made at the first call.

    `mode` is "yes", or "graphs" for CUDA graphs, which start the program's kernels all at once. `tolerance`
    is the largest difference allowed between components of unit vectors, on the first batch.
    """

    def __init__(
        self,
        tower: Callable[[Tensor], Tensor],
        mode: str,
        *,
        device: torch.device,
        tolerance: float,
        where: str,
        **options: Any,
    ) -> None:
        if mode == "graphs" and device.type != "cuda":
            raise InputError(
                "CUDA graphs need a GPU",
                where=where,
                given=f"compile=graphs on {device}",
                hint="--set compile=yes",
            )
        options = {"mode": "reduce-overhead"} if mode == "graphs" else options
        self.tower, self.tolerance, self.where = tower, tolerance, where
        self.program: Callable[[Tensor], Tensor] = torch.compile(tower, dynamic=False, **options)
        #: The largest batch so far; smaller ones are filled up to it.
        self.size = 0
        self.checked = False

    def __call__(self, pixels: Tensor) -> Tensor:
        """(batch, width) features; raises `ModelError` where no program can be made or it disagrees."""
        rows = len(pixels)
        if rows < self.size:
            pixels = torch.cat([pixels, pixels.new_zeros(self.size - rows, *pixels.shape[1:])])
        self.size = max(self.size, rows)
        if hasattr(torch.compiler, "cudagraph_mark_step_begin"):
            torch.compiler.cudagraph_mark_step_begin()
        try:
            # A copy: the next step of a CUDA graph writes to the same memory.
            found = self.program(pixels)[:rows].clone()
        except Exception as error:
            raise ModelError(
                f"the image tower cannot be compiled: {' '.join(causes(error).split())[:240]}",
                where=self.where,
                hint="leave out --set compile",
            ) from None
        if not self.checked:
            self._check(found, self.tower(pixels)[:rows])
            self.checked = True
        return found

    def _check(self, found: Tensor, expected: Tensor) -> None:
        one, other = (torch.nn.functional.normalize(each.float(), dim=-1) for each in (found, expected))
        apart = float((one - other).abs().max()) if len(one) else 0.0
        # Written so that NaN is refused too.
        if not apart <= self.tolerance:
            raise ModelError(
                "the compiled image tower does not agree with the tower",
                where=self.where,
                given=f"unit vectors {apart:.2g} apart",
                allowed=f"at most {self.tolerance:g}",
                hint="leave out --set compile",
            )
