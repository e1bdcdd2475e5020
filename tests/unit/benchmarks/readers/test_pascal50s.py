"""Pascal-50S and Abstract-50S, written as MATLAB files of the released layout and size."""

import numpy as np
import pytest
from scipy.io import savemat

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.benchmarks.readers.specs import read
from counterfoil.errors import DataError
from judged_rows import judged_rows
from refusals import refuses

#: Who wrote the captions of a pair, by category from 1.
WRITERS = {1: (6, 6), 2: (6, 7), 3: (2, 6), 4: (5, 1)}


def _structure(rows):
    """A 1 x n structure, as `struct` makes it in MATLAB."""
    found = np.zeros((1, len(rows)), dtype=[(f"f{at}", object) for at in range(len(rows[0]))])
    for at, row in enumerate(rows):
        found[0, at] = row
    return found


def _cell(text):
    cell = np.empty((1, 1), dtype=object)
    cell[0, 0] = text
    return cell


def _write(folder, votes, categories, name="pascal", same=()):
    """Pairs of whose 48 judgements so many are for the first caption; an image has two pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [(f" first  {at} ", f"first {at}" if at in same else f"second {at}") for at in range(len(votes))]
    pairs = _structure([(f"img_{at // 2}.jpg", *texts[at]) for at in range(len(votes))])
    rows = []
    for at, first in enumerate(votes):
        for each in range(48):
            # References belong to the image; the winners of the first caption are spread.
            winner = 1 if (each * 7) % 48 < first else -1
            rows.append((_cell(f"reference {at // 2}.{each} "), *map(_cell, texts[at]), float(winner)))
    savemat(
        folder / f"pair_{name}.mat",
        {
            "new_input": pairs,
            "category": np.array([categories], dtype=np.uint8),
            "new_data": np.array([WRITERS[each] for each in categories], dtype=np.uint8),
        },
    )
    savemat(folder / f"consensus_{name}.mat", {"triplets": _structure(rows)}, do_compression=True)


def test_votes_labels_and_references(tmp_path, read_free, jpeg):
    _write(tmp_path / "pyCIDErConsensus", [48, 20, 0, 25], [1, 2, 3, 4])
    (tmp_path / "VOC2010" / "JPEGImages").mkdir(parents=True)
    (tmp_path / "VOC2010" / "JPEGImages" / "img_1.jpg").write_bytes(jpeg(1))
    benchmark = read_free("pascal-50s", tmp_path)
    asked = benchmark.judged
    assert asked.votes.tolist() == [[48, 0], [20, 28], [0, 48], [25, 23]]
    assert asked.label.tolist() == [0, 1, 1, 0]
    assert asked.groupings == {"category": ("HC", "HI", "HM", "MM")}
    assert judged_rows(benchmark) == [
        (str(at), f"img_{at // 2}.jpg", f"{side} {at}", [f"reference {at // 2}.{k}" for k in range(48)])
        for at in range(4)
        for side in ("first", "second")
    ]
    assert [image.source is not None for image in benchmark.images] == [False, True]
    assert (asked.sample, asked.draws, asked.seed) == (5, 5, 0)
    assert "drawn" not in benchmark.source
    assert np.array_equal(benchmark.clusters, [0, 0, 1, 1])


def test_equal_votes_are_drawn_once_for_all(tmp_path, read_free):
    # One pair has two captions that are the same: all votes are for both.
    _write(tmp_path, [24] * 12, [1] * 12, same=(3,))
    first, again = (read_free("pascal-50s", tmp_path) for _ in range(2))
    asked = first.judged
    assert asked.votes[3].tolist() == [48, 48]
    assert (np.delete(asked.votes, 3, axis=0) == 24).all()
    assert first.digest == again.digest
    assert 0 < asked.label.sum() < 12  # both happen: throws of a coin
    assert "(12 labels drawn with seed 0, votes being equal)" in first.source


def test_the_counts_of_the_card(tmp_path):
    """A hundredth of the release, 40 pairs and 1,920 judgements, against a hundredth of the counts."""
    votes = np.random.default_rng(0).integers(0, 49, 40).tolist()
    _write(tmp_path, votes, [at // 10 + 1 for at in range(40)])
    counts = {name: number // 100 for name, number in card("pascal-50s").counts.items()}
    small = card("pascal-50s").model_copy(update={"size": 40, "counts": counts})
    benchmark = read(small, tmp_path, None)
    assert benchmark.judged.votes[:, 0].tolist() == votes
    # 80 candidates, and 48 references of each of 20 images, kept once.
    assert len(benchmark.captions) == 80 + 48 * 20
    refuses(r"of questions Pascal-50S has in group 'HC'; given: 10", read, card("pascal-50s"), tmp_path, None)


def test_abstract_with_and_without_its_pairs(tmp_path, read_free, monkeypatch):
    """Both captions are right in the first half of its pairs."""
    (layout,) = specs.layouts("abstract-50s")
    assert (card("abstract-50s").size, layout.open["alike"]) == (400, 200)
    halves = layout.model_copy(update={"open": {**layout.open, "alike": 1}})
    monkeypatch.setattr(specs, "layouts", lambda name: (halves,))
    _write(tmp_path, [30, 10], [1, 1], "abstract")
    whole = read_free("abstract-50s", tmp_path)
    assert [image.id for image in whole.images] == ["img_0.jpg"]
    (tmp_path / "pair_abstract.mat").unlink()
    bare = read_free("abstract-50s", tmp_path)
    assert [image.id for image in bare.images] == ["0", "1"]
    for benchmark in (whole, bare):
        asked = benchmark.judged
        assert asked.votes.tolist() == [[30, 18], [10, 38]]
        assert asked.label.tolist() == [0, 1]
        assert asked.groupings["category"] == ("HC", "HI")


def test_files_that_do_not_fit(tmp_path, read_free):
    _write(tmp_path, [30, 10], [1, 3])
    pairs, consensus = tmp_path / "pair_pascal.mat", tmp_path / "consensus_pascal.mat"
    good = consensus.read_bytes()
    _write(tmp_path / "other", [30], [1])
    consensus.write_bytes((tmp_path / "other" / "consensus_pascal.mat").read_bytes())
    with pytest.raises(DataError, match=r"not 48 judgements of every pair; given: 48 judgements of 2 pairs"):
        read_free("pascal-50s", tmp_path)
    consensus.write_bytes(good[: len(good) // 2])
    refuses(r"consensus_pascal.mat: not a MATLAB file that scipy reads", read_free, "pascal-50s", tmp_path)
    consensus.write_bytes(good)
    savemat(pairs, {"new_input": _structure([("a.jpg", "x", "y"), ("a.jpg", "z", "w")])})
    refuses("no variable 'category'; given: new_input", read_free, "pascal-50s", tmp_path)
    facts = {"category": np.array([[1, 3]]), "new_data": np.array([[6, 6], [6, 7]])}
    savemat(pairs, {"new_input": _structure([("a.jpg", "x", "y"), ("a.jpg", "z", "w")]), **facts})
    with pytest.raises(DataError, match=r"pair 1: a category .* given: category 3, written by \[6, 7\]"):
        read_free("pascal-50s", tmp_path)
    facts["new_data"] = np.array([[6, 6], [6, 1]])
    savemat(pairs, {"new_input": _structure([("a.jpg", "x", "y"), ("a.jpg", "z", "w")]), **facts})
    with pytest.raises(DataError, match="triplets, row 1: the judgement is not of pair 0; given: first 0"):
        read_free("pascal-50s", tmp_path)
    savemat(pairs, {"new_input": _structure([("a.jpg", "x", " "), ("a.jpg", "z", "w")]), **facts})
    refuses("new_input, row 1: an empty caption", read_free, "pascal-50s", tmp_path)
    pairs.unlink()
    with pytest.raises(DataError, match=r"pair_pascal.mat: file missing; it may lie in pyCIDErConsensus too"):
        read_free("pascal-50s", tmp_path)
