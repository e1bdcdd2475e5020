"""The fast towers: trees of tokens, and the structures they leave to the library.

That their answers are the library's is tested where models are loaded (test_open_clip.py).
"""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from open_clip.transformer import LayerScale

from counterfoil.models.clip_fast import FastTextTower, grow, image_tower, text_tower


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=12))
def test_a_tree_gives_back_its_rows_and_shares_what_they_begin_with(rows):
    tree = grow(rows)
    for row, nodes, end in zip(rows, tree.nodes, tree.ends, strict=True):
        assert [tree.tokens[node] for node in nodes[: end + 1]] == row
        assert [tree.depths[node] for node in nodes[: end + 1]] == list(range(len(row)))
    # As many nodes as there are different beginnings, and each found where `first` says.
    assert len(tree.tokens) == len({tuple(row[:n]) for row in rows for n in range(1, len(row) + 1)})
    flat = [node for nodes in tree.nodes for node in nodes]
    assert [flat[place] for place in tree.first] == list(range(len(tree.tokens)))
    assert len({len(nodes) for nodes in tree.nodes}) == 1


@pytest.mark.parametrize(("end", "kept"), [(None, [4, 2, 9]), (2, [4, 2]), (7, [4])])
def test_texts_are_cut_at_their_end_mark(end, kept):
    # The highest id, the mark itself, or the first token where there is no mark: what the library pools.
    assert FastTextTower(None, end).cut([4, 2, 9, 9, 0, 0]) == kept


@pytest.mark.usefixtures("tiny_architectures")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("visual.pool_type", "avg"),
        ("visual.output_tokens", True),
        ("visual.transformer.resblocks.1.ls_1", LayerScale(64)),
        ("visual.transformer.resblocks.1.mlp.gelu", torch.nn.ReLU()),
        ("visual.transformer.resblocks.2.attn.add_zero_attn", True),
    ],
)
def test_other_image_towers_are_left_to_the_library(path, value, tiny_model):
    model = tiny_model("tiny")
    assert image_tower(model) is not None
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, value)
    assert image_tower(model) is None


@pytest.mark.usefixtures("tiny_architectures")
@pytest.mark.parametrize("change", ["pool", "mask", "no mask"])
def test_texts_are_cut_only_under_a_causal_mask_and_pooled_at_the_end(change, tiny_model):
    model = tiny_model("tiny")
    assert text_tower(model) is not None
    if change == "pool":
        model.text_pool_type = "last"
    elif change == "mask":
        model.attn_mask[3, 5] = 0.0
    else:
        model.attn_mask = None
    assert text_tower(model) is None
