"""Counts of things in words."""


def amount(number: int, noun: str) -> str:
    """A number with its noun, which is given in the singular; commas between thousands.

    >>> amount(1, "image"), amount(0, "true pair"), amount(12_000, "query"), amount(2, "image with captions")
    ('1 image', '0 true pairs', '12,000 queries', '2 images with captions')
    """
    head, with_, rest = noun.partition(" with ")
    if number != 1:
        head = head[:-1] + "ies" if head.endswith("ry") else head + "s"
    return f"{number:,} {head}{with_}{rest}"
