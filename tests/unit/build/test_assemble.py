"""What is assembled of rows: quads, choices and training sets that the other commands read."""

from dataclasses import replace

import numpy as np
import PIL.Image
import pytest

import counterfoil as cf
from counterfoil.benchmarks.folder import is_benchmark_folder, load, save
from counterfoil.benchmarks.training_files import read as read_training
from counterfoil.build.pipeline import BuildRecipe, run_recipe
from counterfoil.build.steps.assemble import Assemble
from counterfoil.build.steps.read import ReadRows, of_benchmark
from counterfoil.errors import DataError
from counterfoil.world.benchmarks import gallery
from counterfoil.world.ratings import rated
from counterfoil.world.sample import quads
from refusals import refuses


def _built(work, *, form="auto", **read):
    steps = (ReadRows(n=21, size=32, **read), Assemble(form=form))
    run_recipe(BuildRecipe("mine", "Mine", "", 0, steps), work)
    return work.folder


def test_the_folder_of_a_build_is_a_benchmark_and_assembled_again_where_it_is_gone(work):
    folder = _built(work)
    assert is_benchmark_folder(folder)
    made = load(folder)
    assert (made.card.form, len(made)) == ("choice", 21)
    assert set(made.questions.groupings) == {"subset", "type"}
    half = cf.evaluate("blind:constant", str(folder), ties="half", cache=None, quiet=True)
    assert half.result["accuracy"].value == 0.5
    (folder / "benchmark" / "manifest.json").unlink()
    _built(work)
    assert len(load(folder)) == 21


def test_quads_are_what_their_rows_were_read_from(work, tmp_path):
    made = quads(14, seed=5, size=48)
    save(made, tmp_path / "quads")
    built = load(_built(work, source=str(tmp_path / "quads")))
    for kind in ("images", "captions"):
        of_question = [
            [[getattr(bench, kind)[i] for i in places] for places in getattr(bench.questions, kind).tolist()]
            for bench in (made, built)
        ]
        shown = [
            [[item.text if kind == "captions" else item.read() for item in items] for items in questions]
            for questions in of_question
        ]
        assert shown[0] == shown[1]
    assert built.questions.ids == made.questions.ids


def test_a_training_set_keeps_rows_and_parts_images(work):
    folder = _built(work, form="training", training=True)
    parts = [read_training(folder / "benchmark" / f"{name}.parquet") for name in ("train", "validation")]
    assert sum(map(len, parts)) == 21
    shown = [{image.read() for image in part.images} for part in parts]
    assert not shown[0] & shown[1]
    assert set(parts[0].rows) == {"image", "caption", "negative_caption"}
    # What is assembled next takes its place.
    assert is_benchmark_folder(_built(work))
    assert not (folder / "benchmark" / "train.parquet").exists()


def test_images_that_are_missing_are_refused_where_a_folder_is_given_and_other_gaps_named(work, tmp_path):
    rows = tmp_path / "rows.csv"
    rows.write_text("image,caption,negative_caption\na.png,a cat,a dog\nb.png,two cats,two dogs\n")
    notes = []
    folder = _built(replace(work, session=replace(work.session, note=notes.append)), source=str(rows))
    assert [image.source for image in load(folder).images] == [None, None]
    assert notes == ["2 of 2 images are not at hand; give their folder with --images"]
    photos = tmp_path / "photos"
    photos.mkdir()
    PIL.Image.fromarray(np.zeros((8, 8, 3), np.uint8)).save(photos / "a.png")
    with pytest.raises(DataError, match=r"assemble opens are not at hand; given: 1 of 2, such as b\.png"):
        _built(work, source=str(rows), images=str(photos))
    refuses(r"no such image; given: a\.png", _built, work, source=str(rows), form="training")
    rows.write_text("id,image,caption,negative_caption\nx,a.png,a cat,a dog\ny,b.png,two cats,\n")
    refuses("row 'y': a row without negative_caption", _built, work, source=str(rows))


def test_rows_of_a_gallery_are_its_captions_with_their_images_and_ratings_are_refused(work):
    small = gallery(12, size=32, captions_each=3)
    rows = of_benchmark(small, work)
    texts = {caption.id: caption.text for caption in small.captions}
    assert [texts[name] for name in rows["id"].to_pylist()] == rows["caption"].to_pylist()
    assert len(set(rows["image"].to_pylist())) == 12
    refuses("no training set", of_benchmark, rated(8, size=32), work)
