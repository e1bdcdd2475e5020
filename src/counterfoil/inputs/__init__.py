"""Input from outside the program, checked before use.

    files     regular files, their text, JSON and TOML within bounds, and the JSON that counterfoil writes
    columns   Parquet tables: those that counterfoil writes, as schemas, and those of any origin
    arrays    npy and npz files, never objects
    pickled   pickles of texts, numbers and arrays, never through NumPy's own unpickling
    pictures  the formats of images that are opened
    fields    fields of dataclasses from files and command lines, keys of endpoints
    limits    numbers that decide how large something gets, and memory that is free

Everything here raises `DataError` or `InputError` with the file and the field or row.
"""
