"""A study of seconds: everything a study does, and numbers that mean nothing."""

from dataclasses import replace

from counterfoil.studies.plan import Plan

TINY = Plan(
    loose=120, contrasts=80, questions=28, images=20, judged=24, watched=7, generated=40, relation_steps=4,
    steps=8, generated_steps=3, mining_steps=12, batch_size=16, size=32,
)  # fmt: skip
#: As `counterfoil demo --full` is to `counterfoil demo`.
FULLER = replace(TINY, seeds=(0, 1), noise=(0.61,), mining=("sum", "hardest"))


def facts(benchmark, scorer):
    """What a manifest of these runs says."""
    return {"scorer": {"name": scorer.identity.name}}
