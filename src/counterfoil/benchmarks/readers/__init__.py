"""`read(card, data, images)` makes a benchmark of what is on disk.

Most benchmarks have a layout in `catalog.toml`, read by `specs` with functions for what is irregular
(`table_functions`, `judged_tables`); the others have a module of their own. `data` is the file or folder the
user named, `images` the folder that holds the images where the layout
keeps them apart. Shared between layouts: `rows` (Parquet, Arrow, saved data sets, image folders, the hub,
and the released file that is meant), `questions` (rows to questions, right answers by id, counts against the
card), `released_captions` (COCO's captions, classes and lists of ids, Karpathy's JSON, token files, the
references of an image).
"""
