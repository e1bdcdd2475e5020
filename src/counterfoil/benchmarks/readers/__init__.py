"""`read(card, data, images)` makes a benchmark of what is on disk.

Most benchmarks have a layout in `catalog.toml`, read by `specs` with functions for what is irregular
(`table_functions`, `judged_tables`); the others have a module of their own. `data` is the file or folder the
user named, `images` the folder that holds the images where the layout keeps them apart.
"""
