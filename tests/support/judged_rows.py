"""What people judged, row by row, as the readers' tests compare it."""


def judged_rows(benchmark):
    """(id, image, caption, references) of every row: of every candidate of ratings and of preferences."""
    asked, text = benchmark.judged, [caption.text for caption in benchmark.captions]
    rows = zip(asked.rows_of.tolist(), asked.images.tolist(), asked.captions.tolist(), strict=True)
    return [
        (
            asked.ids[question],
            benchmark.images[image].id,
            text[caption],
            [] if asked.references is None else [text[i] for i in asked.references.row(row)],
        )
        for row, (question, image, caption) in enumerate(rows)
    ]
