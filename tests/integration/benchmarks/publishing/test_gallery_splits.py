"""A gallery that is published in splits: what is in which, what is cut, and that each is measured alike."""

from dataclasses import replace

import numpy as np
import pytest

from contracts import forms
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.folder import load
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.benchmarks.publishing.splits import divided
from counterfoil.engine.gallery import rank
from counterfoil.engine.similarity import Matrix
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels

datasets = pytest.importorskip("datasets")

SPLITS = ("train", "test")


@pytest.fixture(scope="module")
def tables(published, tmp_path_factory):
    """The tables of the published gallery as `datasets` reads them: rows by table and split."""
    cache, folder = tmp_path_factory.mktemp("read"), str(published["halves"].folder)
    found = {}
    for name in ("images", "captions", "queries", "positives"):
        read = datasets.load_dataset(folder, name, cache_dir=str(cache))
        assert set(read) == set(SPLITS)
        found[name] = {split: read[split].to_list() for split in SPLITS}
    return found


def test_an_image_its_captions_and_its_queries_are_in_one_split(published, tables):
    benchmark = published["halves"].benchmark
    images = {split: {row["id"] for row in tables["images"][split]} for split in SPLITS}
    assert not images["train"] & images["test"]
    assert images["train"] | images["test"] == {image.id for image in benchmark.images}
    assert len(images["test"]) == 8
    for split in SPLITS:
        captions = {row["id"] for row in tables["captions"][split]}
        assert {row["image_id"] for row in tables["captions"][split]} == images[split]
        queries = {(row["direction"], row["query_id"]) for row in tables["queries"][split]}
        assert queries == {("i2t", name) for name in images[split]} | {("t2i", name) for name in captions}
    texts = {row["caption"] for split in SPLITS for row in tables["captions"][split]}
    assert texts == {caption.text for caption in benchmark.captions}


def test_right_answers_across_splits_are_cut_and_counted(published, tables):
    which = published["halves"]
    benchmark = which.benchmark
    home = {row["id"]: split for table in ("images", "captions") for split in SPLITS
            for row in tables[table][split]}  # fmt: skip
    kept, cut = {split: set() for split in SPLITS}, 0
    for way, search, asking, asked in (
        ("i2t", benchmark.gallery.i2t, benchmark.images, benchmark.captions),
        ("t2i", benchmark.gallery.t2i, benchmark.captions, benchmark.images),
    ):
        for query, item in zip(search.positives.queries, search.positives.items, strict=True):
            names = asking[search.queries[query]].id, asked[item].id
            if home[names[0]] == home[names[1]]:
                kept[home[names[0]]].add((f"{way}/{names[0]}", names[1]))
            else:
                cut += 1
    assert cut
    for split in SPLITS:
        assert {(row["query"], row["item_id"]) for row in tables["positives"][split]} == kept[split]
    every = cut + sum(map(len, kept.values()))
    assert which.written.lost.startswith(f"{cut} of {every} right answers join an image and a caption of two")
    assert which.written.lost in (which.folder / "README.md").read_text()


def test_each_split_is_measured_as_a_gallery_of_its_own(published, tables):
    """The groups of the whole folder against galleries that are put together from the rows of `datasets`."""
    whole = load(published["halves"].folder)
    scores = np.random.default_rng(0).normal(size=(len(whole.images), len(whole.captions))).astype(np.float32)
    measured = evaluate(whole, rank([whole], Matrix(scores))[0], scorer="drawn", draws=100)
    row = {image.id: at for at, image in enumerate(whole.images)}
    column = {caption.id: at for at, caption in enumerate(whole.captions)}
    for split in SPLITS:
        images = [row["id"] for row in tables["images"][split]]
        captions = [row["id"] for row in tables["captions"][split]]
        right = {way: {name: [] for name in names} for way, names in (("i2t", images), ("t2i", captions))}
        for each in tables["positives"][split]:
            way, _, name = each["query"].partition("/")
            items = captions if way == "i2t" else images
            right[way][name].append(items.index(each["item_id"]))
        own = Benchmark(
            whole.card,
            tuple(whole.images[row[name]] for name in images),
            tuple(whole.captions[column[name]] for name in captions),
            Gallery(
                (*(f"i2t/{name}" for name in images), *(f"t2i/{name}" for name in captions)),
                i2t=RetrievalDirection(np.arange(len(images)), Qrels.of(list(right["i2t"].values()))),
                t2i=RetrievalDirection(np.arange(len(captions)), Qrels.of(list(right["t2i"].values()))),
                owners=np.array([images.index(each["image_id"]) for each in tables["captions"][split]]),
                n_images=len(images),
            ),
        )
        part = scores[np.ix_([row[name] for name in images], [column[name] for name in captions])]
        alone = evaluate(own, rank([own], Matrix(part))[0], scorer="drawn", draws=100)
        assert alone.measures
        for name, estimate in alone.measures.items():
            assert measured.groups[split][name].value == pytest.approx(estimate.value), (split, name)


def test_captions_of_no_known_image_go_with_their_first_right_one():
    gallery = Gallery(
        ("i2t/a", "i2t/b", "t2i/0", "t2i/1", "t2i/2", "t2i/3"),
        i2t=RetrievalDirection(np.arange(2), Qrels.of([[0, 2], [1, -1]], [[1, 0.5], [1, 1]])),
        t2i=RetrievalDirection(np.arange(4), Qrels.of([[0], [1, 0], [], []])),
        owners=np.array([-1, -1, -1, 0]),
        n_images=2,
    )
    found, lost = divided(gallery, np.array([True, False]))
    # The third is right of the first image alone, the fourth was written for it.
    assert found.caption_parts.tolist() == [1, 0, 1, 1]
    assert found.groupings["split"] == ("test", "train", "test", "train", "test", "test")
    assert found.t2i.positives.items.tolist() == [0, 1]
    # What the gallery does not hold stays a right answer.
    assert found.i2t.positives.items.tolist() == [0, 2, 1, -1]
    assert (lost.answers, lost.cut, lost.queries) == (6, 1, 0)


def test_right_answers_by_rule_are_counted_pair_by_pair():
    rng = np.random.default_rng(1)
    images, owners = rng.random((9, 4)) < 0.5, np.repeat(np.arange(9), 2)
    gallery = Gallery(
        (*(f"i2t/{at}" for at in range(9)), *(f"t2i/{at}" for at in range(18))),
        i2t=RetrievalDirection(np.arange(9), Plausible(images, images[owners], (0, 1))),
        t2i=RetrievalDirection(np.arange(18), Plausible(images[owners], images, (0, 1))),
        owners=owners,
        n_images=9,
    )
    tested = np.arange(9) % 3 == 0
    _, lost = divided(gallery, tested)
    near = (images[:, None] != images[owners]).sum(axis=2) <= 1
    assert lost.answers == 2 * near.sum()
    assert lost.cut == 2 * (near & (tested[:, None] != tested[owners])).sum()
    assert lost.cut > 0


def test_a_gallery_whose_queries_are_in_other_splits_than_its_parts_stays_whole():
    gallery = forms.gallery().gallery
    labels = tuple("train" if at % 2 else "test" for at in range(len(gallery)))
    release = replace(gallery, groupings={"split": labels}).release()
    assert [table.divided for table in release.tables] == [False, False, True, False]
