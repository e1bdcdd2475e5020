"""Input from outside the program, checked before use.

    files     regular files, their bytes and their text
    parsed    JSON and TOML within bounds of depth and length
    models    the JSON files that counterfoil writes, as pydantic models
    columns   the Parquet tables that counterfoil writes, as schemas; Parquet of any origin
    arrays    npy and npz files, never objects
    xml       XML without document types
    pickled   pickles of texts, numbers and arrays, never through NumPy's own unpickling
    memory    whether what a file holds has room here
    amounts   numbers of the user that decide how large something gets

Everything here raises `DataError` or `InputError` with the file and the field or row.
"""
