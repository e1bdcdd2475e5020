"""Benchmarks cut to some of their questions, and the facts of the catalog, whose readers all exist."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, strategies as st

from contracts import forms
from counterfoil.benchmarks.benchmark import Benchmark, Card, card
from counterfoil.benchmarks.forms import Choice, Quad
from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.catalog import BENCHMARKS
from counterfoil.errors import InputError, UnknownNameError
from refusals import refuses


def _quads(with_image, with_text):
    """Questions over a chain of images: question n asks of images n and n+1, and of captions 2n and 2n+1."""
    n = len(with_image) - 1
    return Benchmark(
        card=Card(name="chain", title="Chain", form="quad"),
        images=tuple(Image(f"i{k}", BytesSource(b"x") if has else None) for k, has in enumerate(with_image)),
        captions=tuple(Caption(f"c{k}", f"text {k}" if has else None) for k, has in enumerate(with_text)),
        questions=Quad(
            tuple(f"q{k}" for k in range(n)),
            groupings={"side": tuple("left" if k % 2 else "right" for k in range(n))},
            captions=np.arange(2 * n).reshape(n, 2),
            images=np.stack([np.arange(n), np.arange(n) + 1], axis=1),
        ),
    )


@given(st.data())
def test_what_is_at_hand(data):
    n = data.draw(st.integers(1, 6))
    flags = st.booleans()
    images = data.draw(st.lists(flags, min_size=n + 1, max_size=n + 1))
    texts = data.draw(st.lists(flags, min_size=2 * n, max_size=2 * n))
    whole = _quads(images, texts)
    expected = [k for k in range(n) if images[k] and images[k + 1] and texts[2 * k] and texts[2 * k + 1]]
    if not expected:
        refuses(r"no question has all of its (images|captions) at hand", whole.available)
        return
    result = whole.available()
    assert result.questions.ids == tuple(f"q{k}" for k in expected)
    assert result.images_at_hand
    assert result.captions_at_hand
    for row, k in enumerate(expected):
        assert [result.images[i].id for i in result.questions.images[row]] == [f"i{k}", f"i{k + 1}"]
        assert [result.captions[i].id for i in result.questions.captions[row]] == [
            f"c{2 * k}",
            f"c{2 * k + 1}",
        ]
        assert result.questions.groupings["side"][row] == ("left" if k % 2 else "right")
    # Items without a question are gone.
    assert len(result.images) == len({k + d for k in expected for d in (0, 1)})


def test_questions_of_fewer_candidates_show_no_others():
    whole = forms.choices({"few": 2}, k=(3, 2))
    texts = [f"caption {k}" for k in range(5)]
    assert whole[1]["captions"] == texts[3:]
    assert whole.to_arrow()["captions"].to_pylist() == [texts[:3], texts[3:]]


def test_select_takes_positions_in_their_order():
    result = _quads([True] * 4, [True] * 6).select(np.array([2, 0]))
    assert result.questions.ids == ("q2", "q0")
    assert [result.images[i].id for i in result.questions.images[0]] == ["i2", "i3"]
    refuses("no question is left", result.select, np.array([False, False]))
    for odd in ([2], [-1], [0.5], ["0"], [True], [[0]], [[0], [0, 1]], None, 1, (i for i in (0, 1))):
        refuses("no choice of questions", result.select, odd, error=InputError)
    for odd in (0, 1.5, "x", None, [2]):
        refuses("argument 'n': ", result.limited, odd, error=InputError)


def test_equal_bytes_are_one_photograph_where_nobody_named_it():
    # Questions 0 and 2 show the same bytes under different names; 1 shows others.
    contents = (b"one", b"two", b"one")
    images = tuple(Image(f"{i}_i0", BytesSource(data), photo=None) for i, data in enumerate(contents))
    captions = tuple(Caption(f"{i}", f"caption {i}") for i in range(6))
    benchmark = forms.choices_of(images, captions)
    assert benchmark.clusters.tolist() == [0, 1, 0]
    # Named photographs are believed, and an image that is not at hand stands for itself.
    named = replace(benchmark, images=tuple(replace(image, photo="", source=None) for image in images))
    assert (named.clusters.tolist(), named.digest) == ([0, 1, 2], benchmark.digest)


def test_one_caption_in_two_normal_forms_and_one_image_in_two_spellings_are_shared():
    names, texts = ("x/a.jpg", "./x/a.jpg", "x/b.jpg"), ("caf\u00e9", "cafe\u0301", "a cat", "a dog")
    images = tuple(Image(name) for name in names)
    captions = tuple(Caption(str(i), text) for i, text in enumerate(texts))
    card = Card(name="spelled", title="Spelled", form="choice")
    asked = Choice(("p", "q", "r"), query=np.array([0, 1, 2]), candidates=np.array([[0, 2], [2, 3], [1, 3]]))
    shared = Benchmark(card, images, captions, asked).dependence
    assert (shared.images.tolist(), shared.captions[0, 0]) == ([[0], [0], [1]], shared.captions[2, 0])


OWN = ("pairs", "gallery", "ratings", "preferences", "statements")


@pytest.mark.parametrize("each", BENCHMARKS.values(), ids=list(BENCHMARKS))
def test_a_card_is_complete(each):
    module, _, function = each.reader.partition(":")
    assert callable(getattr(import_module(module), function))
    assert each.measures
    assert each.pitfalls
    if each.name not in OWN:
        assert each.licence
    if each.name not in OWN and not each.name.startswith("world-"):
        assert each.citation
        assert each.homepage.startswith("https://")
        # A split may also be one of local files.
        assert each.split or not each.hub
    assert each.revision == "" or len(bytes.fromhex(each.revision)) == 20  # a pinned revision is a full one
    assert each.form == "quad" or not {"group", "group_macro"} & set(each.measures)
    assert each.macro or not any(name.endswith("_macro") for name in each.measures)


def test_the_benchmarks_there_are_and_that_group_counts_add_up():
    bivlc, sugarcrepe, winoground = card("bivlc"), card("sugarcrepe"), card("winoground")
    subsets = ("add_obj", "add_att", "replace_obj", "replace_att", "replace_rel", "swap_obj", "swap_att")
    for item in (bivlc, sugarcrepe):
        assert sum(item.counts[name] for name in subsets) == item.size
        assert sum(item.counts[name] for name in ("add", "replace", "swap")) == item.size
    assert sum(winoground.counts[name] for name in ("Relation", "Object", "Both")) == winoground.size
    assert sum(winoground.counts[f"{n}"] for n in ("1 Main Pred", "2 Main Preds")) == winoground.size
    assert sum(card("sugarcrepe-pp").counts.values()) == card("sugarcrepe-pp").size
    # The paper's edition of SugarCrepe has one item more, in swap_obj.
    assert sugarcrepe.also == {
        "swap_obj": sugarcrepe.counts["swap_obj"] + 1,
        "swap": sugarcrepe.counts["swap"] + 1,
        "same words": sugarcrepe.counts["same words"] + 1,
    }
    assert len(BENCHMARKS) == 98
    refuses("did you mean 'bivlc'", card, "bivcl", error=UnknownNameError)
