"""All benchmarks of released files, one contract: counts, right pairs, pictures, ties and bad files."""

from dataclasses import replace

import numpy as np
import pytest

from benchmark_layouts import LAYOUTS, Released
from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import BENCHMARKS, card
from counterfoil.catalog import benchmark as read_benchmark
from counterfoil.errors import DataError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.registry import resolve
from refusals import refuses


def _small(name, released, **changes):
    """The benchmark as its reader reads it, with the counts of the small release."""
    known = card(name)
    counts = released.counts if known.counts else {}
    small = known.model_copy(update={"size": len(released.ids), "counts": counts, "also": {}, **changes})
    return resolve(known.reader)(small, released.folder, None)


@pytest.fixture(scope="module", params=LAYOUTS)
def name(request):
    return str(request.param)


@pytest.fixture(scope="module")
def released(name, tmp_path_factory):
    made = Released(tmp_path_factory.mktemp("release"))
    LAYOUTS[name](made)
    return made


@pytest.fixture(scope="module")
def found(name, released):
    return _small(name, released)


def _scores(found, right):
    """1 for right pairs, 0 for the others, in the shape of the answers."""
    captions, images = found.listed.pairs()
    values = [
        float((found.captions[c].text, found.images[i].id) in right)
        for c, i in zip(captions.reshape(-1).tolist(), images.reshape(-1).tolist(), strict=True)
    ]
    return found.listed.collect(np.array(values))


def test_right_pairs_are_right(released, found):
    assert list(found.questions.ids) == released.ids
    result = evaluate(
        found, Scores(_scores(found, released.right)), scorer="truth", draws=100, interval="wilson"
    )
    assert {measure: each.value for measure, each in result.measures.items()} == dict.fromkeys(
        result.measures, 1.0
    )
    assert set(found.card.measures) <= set(result.measures)
    assert set(found.card.macro_groupings) <= set(found.questions.groupings)
    groups = {group: int(mask.sum()) for group, mask in found.questions.groups().items()}
    assert released.counts.items() <= groups.items()


def test_pictures_are_those_of_the_rows(found):
    assert found.images_at_hand
    pictures = [image.decode() for image in found.images]
    assert {picture.mode for picture in pictures} == {"RGB"}
    assert len({picture.tobytes() for picture in pictures}) == len(pictures)


def test_a_release_of_another_size_is_refused(name, released):
    refuses(r"not the number of questions .* has", _small, name, released, size=99, counts={})
    if BENCHMARKS[name].size:
        refuses(r"not the number of questions .* has", read_benchmark, name, data=released.folder)
    free = read_benchmark(name, data=released.folder, counts=False)
    assert list(free.questions.ids) == released.ids


def test_what_is_missing_is_named(name, released, tmp_path):
    empty = tmp_path / "empty"
    empty.mkdir()
    words = refuses("", _small, name, replace(released, folder=empty))
    assert str(empty) in words
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "other.jpg").write_bytes(b"")
    with pytest.raises(DataError, match="images is in this folder"):
        resolve(card(name).reader)(
            card(name).model_copy(update={"size": None, "counts": {}}), released.folder, pictures
        )
