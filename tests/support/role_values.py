"""What the rows of a training set hold in a role, row by row."""

from counterfoil.benchmarks.training_rows import TrainingSet


def texts(data: TrainingSet, role: str) -> list[str | None]:
    """The caption of each row."""
    return [data.captions[i].text for i in data.rows[role]]


def pictures(data: TrainingSet, role: str) -> list[bytes]:
    """The bytes of each row's image."""
    return [data.images[i].read() for i in data.rows[role]]
