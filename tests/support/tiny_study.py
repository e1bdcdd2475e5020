"""A study of seconds: everything a study does, and numbers that mean nothing."""

from counterfoil.studies.plan import Plan

TINY = Plan(
    loose=120, contrasts=80, questions=28, images=20, judged=24, watched=7, generated=40, relation_steps=4,
    steps=8, generated_steps=3, batch_size=16, size=32,
)  # fmt: skip


def facts(benchmark, scorer):
    """What a manifest of these runs says."""
    return {"scorer": {"name": scorer.identity.name}}
