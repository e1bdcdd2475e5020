"""A mixture of the weights of a network before and after training, kept as a checkpoint."""

from pathlib import Path
from typing import Annotated, Unpack

from counterfoil.jobs.job import feedback_of, job, option
from counterfoil.jobs.shared_options import Reporting
from counterfoil.jobs.training import network
from counterfoil.models import checkpoint
from counterfoil.outputs import Folder, guarded

#: What both ends may be.
_ALLOWED = "a checkpoint's folder, open-clip:ARCH/WEIGHTS, hf:NAME"


@job(
    examples="""Examples:
  counterfoil train mix open-clip:ViT-B-32-quickgelu/openai ckpt/ --alpha 0.5 --out ckpt/mixed
  counterfoil train mix hf:./my-clip ckpt/ --alpha 0.3 --out mixed"""
)
def mix(
    start: str,
    tuned: str,
    *,
    alpha: Annotated[float, option(low=0, high=1)],
    out: Path,
    overwrite: bool = False,
    **reporting: Unpack[Reporting],
) -> None:
    """Interpolate the weights before and after training (WiSE-FT), which often keeps both abilities.

    'counterfoil evaluate' measures the mixture on either task.

    Arguments:
        start: Where training began: a checkpoint's folder or KIND:WHAT.
        tuned: What came of it: a checkpoint's folder.
        alpha: The mixture: 0 is the start, 1 the end.
        out: Folder of the checkpoint.
    """
    feedback = feedback_of(reporting)
    with guarded("train mix", overwrite=overwrite, reads=(start, tuned)) as outputs:
        outputs.folder(Folder(out, checkpoint.FILES))
        before, after = network(start, allowed=_ALLOWED), network(tuned, allowed=_ALLOWED)
        from counterfoil.train.validation import interpolate

        states = before.network.state_dict(), after.network.state_dict()
        after.network.load_state_dict(interpolate(*states, alpha))
        checkpoint.save(out, after, {"mixture": {"start": start, "tuned": tuned, "alpha": alpha}})
    feedback.note(f"wrote the mixture at {alpha:g}: {out}")
