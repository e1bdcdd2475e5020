"""SugarCrepe++: a JSON list per subset, two positive captions and a negative one per image."""

from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.hub import hub_rows
from counterfoil.data.readers.sugarcrepe import of_rows, subset_files
from counterfoil.data.tables import names, read_table, stack

SUBSETS = ("replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")

_CANDIDATES = ("caption", "caption2", "negative_caption")


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """SugarCrepe++ from the hub, from the folder of its five JSON files, or one of them alone.

    The image-text task: three candidates, the first two of them right. Question "swap_obj/17" is the item of
    id 17 in swap_obj.json. Images (COCO val2017) are called by their file names; those not in the folder
    `images` (all, where it is None) are left out. Groupings: `subset` and `type` ("replace", "swap").
    Raises `DataError` naming a file that is missing or miscounted, or the item that does not fit.
    """
    if data is None:
        subsets: list[str] = list(SUBSETS)
        tables = [hub_rows(card, (), config=card.configs[name]) for name in subsets]
    else:
        files = subset_files(data, SUBSETS)
        subsets = [file.stem for file in files]
        tables = [read_table(file) for file in files]
    ids = [f"{name}/{key}" for name, table in zip(subsets, tables, strict=True) for key in names(table, "id")]
    source = str(data) if data is not None else card.hub
    rows = stack(tables, source=source, column="subset", values=subsets)
    return of_rows(
        card, ids, rows, _CANDIDATES, images, correct=2, part=data is not None and data.is_file(), path=data
    )
