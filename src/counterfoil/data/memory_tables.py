"""Tables in memory: frames, Arrow tables, records and columns as the table that readers take."""

from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa

from counterfoil.data.tables import DataTable
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.columns import values

#: What messages call such a table.
SOURCE = "data in memory"
_ALLOWED = "a path, a pandas or polars frame, a pyarrow table, a list of dicts, or a dict of columns"


def memory_table(data: Any) -> DataTable:
    """The table that `data` holds: a frame, an Arrow table, a dict of columns, or records, which are dicts.

    Cells stay as they are; NaN and null of a frame, and what a record lacks, are None. Raises `InputError`
    for what is no table, `DataError` for one without rows or with two columns of one name.

    >>> memory_table([{"image": "a.jpg", "caption": "a cat"}, {"image": "b.jpg"}])["caption"]
    ['a cat', None]
    """
    if isinstance(data, DataTable):
        return data
    try:
        columns = _columns(data)
    except (pa.ArrowException, TypeError, ValueError) as error:
        words = " ".join(str(error).split())
        raise InputError(f"not a table: {words}", where=SOURCE, allowed=_ALLOWED) from None
    if not columns:
        raise DataError("the table has no rows", where=SOURCE)
    return DataTable(columns, SOURCE)


def _columns(data: Any) -> dict[str, list[Any]]:
    if hasattr(data, "notna"):  # pandas, whose cells may be pictures, which Arrow does not hold
        if not data.columns.is_unique:
            raise ValueError("a column name occurs twice")
        return {str(k): v for k, v in data.astype(object).where(data.notna(), None).to_dict("list").items()}
    if hasattr(data, "__arrow_c_stream__"):
        table = pa.table(data)
        return {name: values(table, name, where=SOURCE) for name in table.column_names}
    if isinstance(data, Mapping):
        return {str(name): list(cells) for name, cells in data.items()}
    records = list(data) if isinstance(data, Iterable) else [data]
    for record in records:
        if not isinstance(record, Mapping):
            raise TypeError(f"a {type(record).__name__} is no row")
    names = dict.fromkeys(name for record in records for name in record)
    return {str(name): [record.get(name) for record in records] for name in names}
