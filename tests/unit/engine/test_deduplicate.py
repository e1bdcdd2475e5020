import numpy as np
import pytest
from hypothesis import given, strategies as st

from contracts import forms
from counterfoil.benchmarks import Benchmark, Caption, Card, Choice, Image
from counterfoil.engine.plan import deduplicate, shards


def choice(texts, candidates, query, images):
    questions = Choice(
        tuple(str(q) for q in range(len(query))),
        query=np.asarray(query, dtype=np.int64),
        candidates=np.asarray(candidates, dtype=np.int64),
    )
    return Benchmark(
        Card(name="b", title="b", form="choice"),
        tuple(Image(f"i{i}") for i in range(images)),
        tuple(Caption(f"c{i}", text) for i, text in enumerate(texts)),
        questions,
    )


def test_items_without_a_question_cost_nothing():
    benchmark = choice(["a", "b", "unused", "c"], [[3, 0]], [2], 4)
    captions, images = benchmark.questions.used()
    assert (captions.tolist(), images.tolist()) == ([3, 0], [2])
    work = deduplicate(benchmark, ["k2"])
    assert [c.text for c in work.captions] == ["c", "a"]
    assert [i.id for i in work.images] == ["i2"]


def test_captions_differ_by_case_and_blanks_and_by_themselves_without_a_text():
    # Tokenizers see them; SugarCrepe has captions with blanks at their ends.
    work = deduplicate(choice(["a dog", "A dog", "a dog ", "a dog"], [[0, 1], [2, 3]], [0, 0], 1), ["k"])
    assert len(work.captions) == 3
    # Captions without a text are only equal to themselves.
    work = deduplicate(choice([None, None, None, "x"], [[0, 1], [0, 3]], [0, 0], 1), ["k"])
    assert (len(work.captions), len(set(work.caption_keys))) == (3, 3)


def test_a_quad_asks_four_pairs():
    benchmark = forms.quads_of([Image("x"), Image("y")], [Caption("c", "c"), Caption("d", "d")])
    work = deduplicate(benchmark, ["x", "y"])
    # Grouped by image; row_of[q, caption, image].
    assert work.pairs.tolist() == [[0, 0], [1, 0], [0, 1], [1, 1]]
    assert work.row_of.tolist() == [[[0, 2], [1, 3]]]
    assert work.spread(np.array([1.0, 2.0, 3.0, 4.0])).tolist() == [[[1.0, 3.0], [2.0, 4.0]]]


@given(st.data())
def test_spread_gives_every_question_its_own_pair(data):
    n, k = data.draw(st.integers(1, 12)), data.draw(st.integers(2, 4))
    texts = data.draw(st.lists(st.sampled_from("abcde"), min_size=4, max_size=8))
    keys = data.draw(st.lists(st.sampled_from("xyz"), min_size=4, max_size=4))
    query = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    row = st.lists(st.integers(0, len(texts) - 1), min_size=k, max_size=k)
    benchmark = choice(texts, data.draw(st.lists(row, min_size=n, max_size=n)), query, 4)
    work = deduplicate(benchmark, [keys[i] for i in benchmark.questions.used()[1]])
    # A pair's score is made of what makes it: if spread is right, every cell shows its own text and key.
    names = [f"{work.captions[c].text}{work.image_keys[i]}" for c, i in work.pairs]
    assert len(set(names)) == len(names)
    captions, images = benchmark.questions.pairs()
    assert sorted(c.text for c in work.captions) == sorted({texts[c] for c in captions.flat})
    assert sorted(keys[int(i.id[1:])] for i in work.images) == sorted({keys[i] for i in images.flat})
    for cell in np.ndindex(captions.shape):
        assert names[work.row_of[cell]] == texts[captions[cell]] + keys[images[cell]]


@pytest.mark.parametrize(
    ("batch", "rows", "size"), [(32, 256, 256), (48, 256, 240), (300, 256, 300), (1, 4, 4)]
)
def test_no_batch_crosses_a_shard(batch, rows, size):
    cut = shards(range(1000), batch, shard_rows=rows)
    assert [row for shard in cut for b in shard for row in b] == list(range(1000))
    assert {sum(map(len, shard)) for shard in cut[:-1]} == {size}
    assert all(len(b) == batch for shard in cut[:-1] for b in shard)


@given(st.integers(1, 40), st.integers(1, 60), st.integers(0, 300), st.integers(0, 10))
def test_finished_shards_leave_the_other_batches_as_they_were(batch, rows, n, finished):
    whole = shards(range(n), batch, shard_rows=rows)
    done = {row for shard in whole[:finished] for b in shard for row in b}
    assert shards([row for row in range(n) if row not in done], batch, shard_rows=rows) == whole[finished:]
