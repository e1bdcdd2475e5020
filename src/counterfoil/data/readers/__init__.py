"""One module per layout: `read(card, data, images)` makes a benchmark of what is on disk or on the hub.

`data` is the file or folder the user named (None: the hub data set of the card), `images` the folder that
holds the images where the layout keeps them apart. Shared between layouts: `rows` (Parquet, Arrow and saved
data sets, images left where they are), `hub`, `photos` (image folders) and `build` (rows to questions, counts
against the card); for galleries `matches` (ids to searches, counts), `coco_files` (captions, instances),
`coco_ids` (lists of ids, positives by id), `coco_test` (the test half) and `karpathy` (his data sets); for
captions that people judged `judged` (texts, ratings, what was left out), `written` (the references of an
image), and `token_file`.
"""
