"""Which rows each step sees, and that what it is given is what preparing those rows one by one gives."""

import io
import threading
import time
from dataclasses import replace
from itertools import chain

import numpy as np
import PIL.Image
import pytest
import torch

import thumbnails
from counterfoil.benchmarks.records import BytesSource, FileSource, Image
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.errors import DataError, InputError
from counterfoil.models.images import UNTOUCHED, Resized, Untouched
from counterfoil.train.dataloaders import Course, Feed, ahead, in_order, order, steps_per_epoch
from counterfoil.train.images import UNVARIED, BatchImages, ImageStore, Variation, say_unreadable
from refusals import refuses

VARIED = Variation(crops=True, erasing=0.5, word_drop=0.5)


def feed(data, *, workers=0, kept=1 << 30, variation=UNVARIED):
    backbone = thumbnails.thumb()
    roles = [role for role in data.rows if "image" in role]
    shown = np.unique(np.concatenate([data.rows[role] for role in roles]))
    how = {"workers": workers, "memory": kept, "varies": variation.of_pictures}
    pictures = ImageStore(data.images, shown, backbone.preparation, **how)
    captions = [role for role in data.rows if "caption" in role]
    return Feed(data, backbone, pictures, roles, captions, variation, 5)


def test_an_order_is_all_rows_and_another_one_in_each_epoch_and_for_each_seed():
    orders = [order(50, epoch, seed).tolist() for epoch in range(3) for seed in range(3)]
    assert all(sorted(rows) == list(range(50)) for rows in orders)
    assert len({tuple(rows) for rows in orders}) == 9
    assert order(50, 2, 1).tolist() == order(50, 2, 1).tolist()


@pytest.mark.parametrize("accumulate", [1, 2])
def test_a_course_is_epoch_after_epoch_in_whole_steps(accumulate):
    # 23 rows in batches of 4: 5 whole ones an epoch, or 2 steps of two.
    course = Course(n=23, batch_size=4, steps=7, accumulate=accumulate, seed=3)
    expected = []
    for epoch in range(10):
        rows = order(23, epoch, 3).tolist()
        for step in range(5 // accumulate):
            for turn in range(accumulate):
                at = 4 * (step * accumulate + turn)
                expected.append((epoch, rows[at : at + 4]))
    assert [(part.epoch, part.rows.tolist()) for part in course] == expected[: 7 * accumulate]
    assert steps_per_epoch(23, 4, accumulate) == 5 // accumulate


def test_a_course_goes_on_where_it_stopped():
    def rows(start):
        return [part.rows.tolist() for part in Course(n=10, batch_size=3, steps=8, accumulate=2, start=start)]

    assert all(rows(start) == rows(0)[2 * start :] for start in range(9))


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("world", [2, 4])
def test_the_processes_slices_side_by_side_are_the_step_of_one(world, accumulate):
    def steps(**process):
        course = list(Course(n=50, batch_size=8, steps=6, accumulate=accumulate, **process))
        cut = [course[start : start + accumulate] for start in range(0, len(course), accumulate)]
        return [np.concatenate([part.rows for part in parts]).tolist() for parts in cut]

    several = [steps(rank=rank, world=world) for rank in range(world)]
    assert [list(chain(*parts)) for parts in zip(*several, strict=True)] == steps()


def test_what_makes_no_batch_is_said_in_a_line():
    with pytest.raises(InputError, match="too few rows to train on; given: 5; allowed: at least 6"):
        Course(n=5, batch_size=3, steps=1, accumulate=2)
    with pytest.raises(InputError, match="cannot be divided among the processes; given: 9 rows, 2 proc"):
        Course(n=50, batch_size=9, steps=1, world=2)


@pytest.mark.parametrize(("workers", "kept"), [(0, 1 << 30), (0, 0), (2, 0), (2, 1 << 30)])
def test_batches_are_their_rows_prepared_one_by_one(workers, kept):
    data = thumbnails.rows(20, negatives=True)
    course = Course(n=20, batch_size=6, steps=7, seed=1)
    stream = feed(data, workers=workers, kept=kept)
    assert stream.pictures.in_memory == (kept > 0)
    count = 0
    for part, batch in zip(course, stream.batches(course), strict=True):
        places = {role: [data.rows[role][row] for row in part.rows] for role in data.rows}
        images = [data.images[i] for i in places["image"] + places["negative_image"]]
        texts = [data.captions[i].text for i in places["caption"] + places["negative_caption"]]
        expected = thumbnails.pixels([thumbnails.Shrunk()(image.decode()) for image in images])
        assert torch.equal(batch.pixels, expected)
        assert torch.equal(batch.tokens, thumbnails.tokens([text or "" for text in texts]))
        assert batch.rows.tolist() == part.rows.tolist()
        count += 1
    assert count == 7


def test_varied_pictures_and_captions_depend_on_seed_epoch_and_row_alone():
    data = thumbnails.rows(12)
    whole = Course(n=12, batch_size=4, steps=6)

    def by_row(batches):
        return {
            (batch.epoch, int(row)): (picture.flatten().tolist(), [word for word in words if word])
            for batch in batches
            for row, picture, words in zip(batch.rows, batch.pixels, batch.tokens.tolist(), strict=True)
        }

    def varied(rank, world):
        course = Course(n=12, batch_size=4, steps=6, rank=rank, world=world)
        return by_row(feed(data, variation=VARIED).batches(course))

    alone, plain = varied(0, 1), by_row(feed(data).batches(whole))
    assert len(alone) == 24
    assert {**varied(0, 2), **varied(1, 2)} == alone
    pictures = [(alone[0, row][0], alone[1, row][0], plain[0, row][0]) for row in range(12)]
    assert all(first not in (second, own) for first, second, own in pictures)
    fewer = [alone[epoch, row][1] for epoch in range(2) for row in range(12)]
    assert all(words for words in fewer)
    assert any(alone[0, row][1] != alone[1, row][1] for row in range(12))
    assert sum(map(len, fewer)) < 2 * sum(len(plain[0, row][1]) for row in range(12))


def test_an_unreadable_image_is_raised_in_its_turn_by_name(tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    data = thumbnails.rows(8)
    images = (*data.images[:5], Image("broken", FileSource(tmp_path / "broken.jpg")), *data.images[6:])
    data = TrainingSet("some", images, data.captions, data.rows)
    refuses(r"broken\.jpg: not an image file", feed, data)
    stream = feed(data, kept=0).batches(in_order(8, 2))
    assert [next(stream).rows.tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    refuses(r"broken\.jpg: not an image file", next, stream)


def test_a_caption_without_text_is_named():
    data = thumbnails.rows(4)
    captions = (replace(data.captions[0], text=None), *data.captions[1:])
    with pytest.raises(DataError, match=f"caption '{data.captions[0].id}' is not at hand"):
        feed(replace(data, captions=captions)).tokens(np.array([0, 1]))


def test_ahead_is_ahead_and_no_more_than_asked():
    made = []

    def source():
        for i in range(20):
            made.append(i)
            yield i

    stream = ahead(source(), depth=3)
    assert next(stream) == 0
    until = time.monotonic() + 60
    while len(made) < 4 and time.monotonic() < until:
        time.sleep(0.01)
    time.sleep(0.05)
    # One was taken, and three are ready.
    assert len(made) == 4
    assert list(stream) == list(range(1, 20))


def test_whoever_stops_early_stops_the_thread_and_closes_the_source():
    closed = threading.Event()

    def source():
        try:
            yield from range(1000)
        finally:
            closed.set()

    before = threading.active_count()
    stream = ahead(source(), depth=2)
    assert next(stream) == 0
    stream.close()
    assert closed.is_set()
    assert threading.active_count() == before


def image(name, value, *, size=(9, 7), cut=False):
    buffer = io.BytesIO()
    PIL.Image.new("RGB", size, (value, value, value)).save(buffer, format="PNG")
    data = buffer.getvalue()
    return Image(name, BytesSource(data[: len(data) // 2] if cut else data, name))


@pytest.mark.parametrize(
    ("kept", "workers"), [(1 << 20, 0), (0, 0), (1 << 20, 2), pytest.param(0, 2, marks=pytest.mark.slow)]
)
def test_unreadable_images_are_all_found_beforehand_where_they_are_skipped(kept, workers):
    images = [image(f"{i}.png", 10 * i, cut=i in (0, 4)) for i in range(8)]
    # So long that resizing it would take gigabytes.
    images[6] = image("6.png", 60, size=(1, 400))
    pictures = ImageStore(images, np.arange(1, 8), Resized(6), memory=kept, skip=True, workers=workers)
    # The first is not used, so it is not opened.
    assert (pictures.unreadable, pictures.in_memory) == ((4, 6), kept > 0)
    asked = [BatchImages(np.array([7, 2])), BatchImages(np.array([5]))]
    result = [[int(picture[0, 0, 0]) for picture in batch] for batch in pictures.batches(asked)]
    assert result == [[70, 20], [50]]


def test_what_is_left_out_is_counted_and_named():
    images = [image(f"{i}.png", 0, cut=True) for i in range(5)]
    said = []
    say_unreadable(images, [0, 2, 3, 4], 9, said.append, UNTOUCHED)
    assert len(said) == 1
    words = "4 images cannot be read, 9 rows are left out: 0.png, 2.png, 3.png, ... (0.png: "
    assert said[0].startswith(words)


def test_images_that_cannot_be_read_at_all_are_an_error():
    images = [image(f"{i}.png", 0, cut=True) for i in range(3)]
    refuses(r"0\.png: not an image file", ImageStore, images, np.arange(3), thumbnails.Shrunk())
    with pytest.raises(InputError, match="no image can be read; given: 3 images"):
        ImageStore(images, np.arange(3), thumbnails.Shrunk(), skip=True)


def test_pictures_of_different_shapes_are_streamed():
    pictures = ImageStore([image("a", 1), image("b", 2, size=(4, 4))], np.arange(2), Untouched())
    assert not pictures.in_memory
    (batch,) = pictures.batches([BatchImages(np.array([1, 0]))])
    assert [picture.shape for picture in batch] == [(4, 4, 3), (7, 9, 3)]


def test_they_are_kept_only_where_all_of_them_fit():
    images = [image(str(i), i) for i in range(4)]
    size = 3 * thumbnails.SIZE**2
    assert ImageStore(images, np.arange(4), thumbnails.Shrunk(), memory=4 * size).in_memory
    assert not ImageStore(images, np.arange(4), thumbnails.Shrunk(), memory=4 * size - 1).in_memory
    assert ImageStore(images, np.arange(3), thumbnails.Shrunk(), memory=4 * size - 1).in_memory
