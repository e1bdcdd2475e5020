"""CLIP's towers in fewer operations, for scoring only.

`agreeing` compares them with open_clip's on a sample, and only those that agree are used. Savings:

* a caption is computed up to its end mark: under a causal mask nothing before it sees what follows;
* captions of a batch are computed as a tree of tokens: those with a common prefix share its states;
* the last block is computed for the one token that is pooled;
* patches, biases, residuals and QuickGELU's factors are part of matrix products:
  x sigmoid(1.702 x) = silu(1.702 x) / 1.702.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

#: Factor of QuickGELU (Hendrycks and Gimpel, arXiv:1606.08415, section 2).
QUICK = 1.702


@dataclass(frozen=True, eq=False)
class FastImageTower:
    """A vision transformer that pools its class token; calls take (batch, 3, size, size) pixels."""

    visual: Any

    def __call__(self, pixels: Any) -> Any:
        visual = self.visual
        batch, _, height, width = pixels.shape
        down, across = visual.conv1.kernel_size
        rows, columns = height // down, width // across
        patches = pixels.reshape(batch, 3, rows, down, columns, across).permute(0, 2, 4, 1, 3, 5)
        kernel = visual.conv1.weight.flatten(1)
        x = pixels.new_empty(batch, rows * columns + 1, kernel.shape[0])
        x[:, 0] = visual.class_embedding
        x[:, 1:] = functional.linear(patches.reshape(batch, rows * columns, -1), kernel)
        x += visual.positional_embedding
        x = visual.ln_pre(x).flatten(0, 1)
        layout = PackedLayout(batch, rows * columns + 1)
        x = visual.ln_post(_pooled(x, visual.transformer.resblocks, layout))
        return x if visual.proj is None else x @ visual.proj


@dataclass(frozen=True, eq=False)
class EndMark:
    """What a causal text tower pools, so that texts may be cut behind it."""

    #: Its id, or None where that is the highest of a text.
    end: int | None

    def cut(self, row: Sequence[int]) -> Sequence[int]:
        """The ids of a text up to its end mark; the first alone where there is none, which is then pooled."""
        end = max(row) if self.end is None else self.end
        return row[: row.index(end) + 1] if end in row else row[:1]

    def ends(self, tokens: Any) -> Any:
        """(batch,) positions of the end marks in (batch, length) ids; 0 where there is none."""
        return tokens.argmax(dim=-1) if self.end is None else (tokens == self.end).int().argmax(dim=-1)


@dataclass(frozen=True, eq=False)
class CausalText(EndMark):
    """A causal text transformer of open_clip that pools the end mark."""

    text: Any

    def hidden(self, tokens: Any) -> Any:
        """(batch, length) ids, of any length up to the model's, to (batch, length, width) normed states."""
        text, length = self.text, tokens.shape[1]
        dtype = text.transformer.get_cast_dtype()
        x = text.token_embedding(tokens).to(dtype) + text.positional_embedding[:length].to(dtype)
        return text.ln_final(text.transformer(x, attn_mask=text.attn_mask[:length, :length]))

    def projected(self, states: Any) -> Any:
        projection = self.text.text_projection
        if projection is None:
            return states
        return projection(states) if isinstance(projection, torch.nn.Module) else states @ projection

    def states(self, rows: Sequence[Sequence[int]]) -> Any:
        ids = torch.tensor(rows, device=self.text.positional_embedding.device)
        return self.projected(self.hidden(ids))


@dataclass(frozen=True, eq=False)
class FastTextTower(CausalText):
    """The same tower in fewer operations; calls take token ids, which are cut at the end mark."""

    def __call__(self, rows: Sequence[Sequence[int]]) -> Any:
        x, layout = self._begun(rows)
        return self._finished(_pooled(x, self.text.transformer.resblocks, layout))

    def states(self, rows: Sequence[Sequence[int]]) -> Any:
        """(batch, longest, width) features of all tokens up to the end mark; a row repeats its last."""
        x, layout = self._begun(rows)
        for block in self.text.transformer.resblocks:
            _block(x, block, layout)
        return layout.spread(self._finished(x))

    def _begun(self, rows: Sequence[Sequence[int]]) -> tuple[Any, "PackedLayout"]:
        """The (nodes, width) states before the first block, and how they lie in the rows."""
        tree = grow([self.cut(row) for row in rows])
        where = self.text.positional_embedding.device

        nodes, first, ends, tokens, depths = (
            torch.tensor(numbers, dtype=torch.int64, device=where)
            for numbers in (tree.nodes, tree.first, tree.ends, tree.tokens, tree.depths)
        )
        layout = PackedLayout(len(rows), len(tree.nodes[0]), nodes, first, ends)
        return self.text.token_embedding(tokens) + self.text.positional_embedding[depths], layout

    def _finished(self, x: Any) -> Any:
        return self.projected(self.text.ln_final(x))


@dataclass(frozen=True)
class Tree:
    """Rows of tokens as a tree of what they begin with; a node is a token after all those before it."""

    tokens: list[int]
    depths: list[int]
    #: For every row the nodes it passes, all rows made equally long by repeating the last node.
    nodes: list[list[int]]
    #: For every node a place in the flattened `nodes` where it stands.
    first: list[int]
    ends: list[int]


def grow(rows: Sequence[Sequence[int]]) -> Tree:
    """The tree of `rows`, none of them empty.

    >>> tree = grow([[1, 5, 9], [1, 5, 7, 9], [2, 9]])
    >>> tree.tokens
    [1, 5, 9, 7, 9, 2, 9]
    >>> tree.nodes
    [[0, 1, 2, 2], [0, 1, 3, 4], [5, 6, 6, 6]]
    >>> tree.first, tree.ends
    ([0, 1, 2, 6, 7, 8, 9], [2, 3, 1])
    """
    length = max(map(len, rows))
    children: dict[tuple[int, int], int] = {}
    tokens: list[int] = []
    depths: list[int] = []
    first: list[int] = []
    nodes = []
    for number, row in enumerate(rows):
        node, passed = -1, []
        for depth, token in enumerate(row):
            node = children.setdefault((node, token), len(tokens))
            if node == len(tokens):
                tokens.append(token)
                depths.append(depth)
                first.append(number * length + depth)
            passed.append(node)
        nodes.append(passed + [node] * (length - len(row)))
    return Tree(tokens, depths, nodes, first, [len(row) - 1 for row in rows])


@dataclass(frozen=True, eq=False)
class PackedLayout:
    """How (nodes, width) states lie in (batch, length) sequences; without a tree the first is pooled."""

    batch: int
    length: int
    nodes: Any = None
    first: Any = None
    ends: Any = None

    def spread(self, states: Any) -> Any:
        return states.view(self.batch, self.length, -1) if self.nodes is None else states[self.nodes]

    def gather(self, states: Any) -> Any:
        states = states.reshape(self.batch * self.length, -1)
        return states if self.first is None else states[self.first]

    def pooled(self, states: Any) -> Any:
        if self.nodes is None:
            return states.view(self.batch, self.length, -1)[:, 0]
        return states[self.nodes.gather(1, self.ends[:, None])[:, 0]]


def image_tower(model: Any) -> FastImageTower | None:
    from open_clip.transformer import VisionTransformer

    visual = model.visual
    supported = (
        type(visual) is VisionTransformer
        and visual.attn_pool is None
        and visual.pool_type == "tok"
        and not visual.output_tokens
        and visual.conv1.bias is None
        and tuple(visual.conv1.stride) == tuple(visual.conv1.kernel_size)
        and all(side % patch == 0 for side, patch in zip(visual.image_size, visual.patch_size, strict=True))
        and isinstance(visual.ln_pre, torch.nn.LayerNorm | torch.nn.Identity)
        and isinstance(visual.ln_post, torch.nn.LayerNorm)
        and _known_blocks(visual.transformer)
    )
    return FastImageTower(visual) if supported else None


def text_tower(model: Any) -> FastTextTower | None:
    tower = causal_text(model)
    if tower is None or not _known_blocks(tower.text.transformer):
        return None
    return FastTextTower(tower.end, tower.text)


def causal_text(model: Any) -> CausalText | None:
    """The text tower of an open_clip model where texts may be cut at the end mark, whatever its blocks."""
    from open_clip.model import CLIP
    from open_clip.transformer import TextTransformer

    if type(model) is CLIP:
        text, pool, end = model, model.text_pool_type, model.text_eos_id
    elif type(getattr(model, "text", None)) is TextTransformer:
        text, pool, end = model.text, model.text.pool_type, model.text.eos_id
        if text.cls_emb is not None or text.use_pad_mask or text.output_tokens:
            return None
    else:
        return None
    if pool not in ("argmax", "eos") or text.attn_mask is None:
        return None
    context = len(text.positional_embedding)
    causal = torch.full((context, context), float("-inf")).triu_(1)
    if not torch.equal(text.attn_mask.cpu().float(), causal):
        return None
    return CausalText(None if pool == "argmax" else end, text)


def agreeing(
    model: Any, rows: Sequence[Sequence[int]], *, dtype: Any, tolerance: float
) -> tuple[FastImageTower | None, FastTextTower | None]:
    """The fast towers that answer a sample as the model's own do, on its device; None for the others."""
    device = next(model.parameters()).device
    images, texts = image_tower(model), text_tower(model)

    def agree(one: Any, other: Any) -> bool:
        first, second = (functional.normalize(x.float(), dim=-1) for x in (one, other))
        return bool((first - second).abs().max() <= tolerance)

    with torch.inference_mode():
        if images is not None:
            height, width = images.visual.image_size
            ramp = torch.linspace(-1, 1, 3 * height * width).sin().view(1, 3, height, width)
            ramp = ramp.to(device=device, dtype=dtype)
            images = images if agree(images(ramp), model.encode_image(ramp)) else None
        if texts is not None:
            plain = model.encode_text(torch.tensor(rows, device=device))
            texts = texts if agree(texts(rows), plain) else None
    return images, texts


def _known_blocks(transformer: Any) -> bool:
    """Whether every block is open_clip's plain one: normalise, attend, add; normalise, multiply, add."""
    from open_clip.transformer import QuickGELU, ResidualAttentionBlock, Transformer

    def is_plain(block: Any) -> bool:
        attention = block.attn
        return (
            type(block) is ResidualAttentionBlock
            and not hasattr(block, "ln_1_kv")
            and isinstance(block.ls_1, torch.nn.Identity)
            and isinstance(block.ls_2, torch.nn.Identity)
            and isinstance(block.ln_1, torch.nn.LayerNorm)
            and isinstance(block.ln_2, torch.nn.LayerNorm)
            and type(block.mlp.gelu) in (QuickGELU, torch.nn.GELU)
            and type(attention) is torch.nn.MultiheadAttention
            and attention._qkv_same_embed_dim
            and attention.in_proj_bias is not None
            and attention.bias_k is None
            and not attention.add_zero_attn
        )

    return type(transformer) is Transformer and all(is_plain(block) for block in transformer.resblocks)


def _pooled(x: Any, blocks: Any, layout: PackedLayout) -> Any:
    """(batch, width) states of the pooled tokens after all blocks; (nodes, width) `x` is overwritten."""
    for block in blocks[:-1]:
        _block(x, block, layout)
    block, width = blocks[-1], x.shape[1]
    attention, normed = block.attn, block.ln_1(x)
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    projected = functional.linear(normed, weight[width:], bias[width:])
    key, value = _heads(layout.spread(projected), 2, attention.num_heads)
    query = functional.linear(layout.pooled(normed), weight[:width], bias[:width])
    (query,) = _heads(query[:, None], 1, attention.num_heads)
    seen = None
    if layout.ends is not None:
        positions = torch.arange(layout.length, device=x.device)
        seen = (positions <= layout.ends[:, None])[:, None, None]
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
    pooled = layout.pooled(x) + attention.out_proj(mixed.flatten(1))
    _add_mlp(pooled, block)
    return pooled


def _block(x: Any, block: Any, layout: PackedLayout) -> None:
    attention = block.attn
    projected = functional.linear(block.ln_1(x), attention.in_proj_weight, attention.in_proj_bias)
    query, key, value = _heads(layout.spread(projected), 3, attention.num_heads)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=layout.nodes is not None)
    x += attention.out_proj.bias
    x.addmm_(layout.gather(mixed.transpose(1, 2)), attention.out_proj.weight.t())
    _add_mlp(x, block)


def _heads(states: Any, parts: int, heads: int) -> Any:
    """(batch, length, parts x width) to (parts, batch, heads, length, width of a head)."""
    batch, length, _ = states.shape
    return states.view(batch, length, parts, heads, -1).permute(2, 0, 3, 1, 4)


def _add_mlp(x: Any, block: Any) -> None:
    inner, outer, gelu = block.mlp.c_fc, block.mlp.c_proj, block.mlp.gelu
    quick = type(gelu) is not torch.nn.GELU
    scale = QUICK if quick else 1.0
    hidden = torch.addmm(inner.bias, block.ln_2(x), inner.weight.t(), beta=scale, alpha=scale)
    if quick:
        hidden = functional.silu(hidden, inplace=True)
    else:
        hidden = functional.gelu(hidden, approximate=gelu.approximate)
    x += outer.bias
    x.addmm_(hidden, outer.weight.t(), alpha=1.0 / scale)
