"""`read(card, data, images)` makes a benchmark of what is on disk.

`data` is the file or folder the user named, `images` the folder that holds the images where the layout keeps
them apart.
"""
