"""CLIP's towers without the work that no score depends on.

Equal to the towers of open_clip up to rounding (the tests hold 1e-5 on unit vectors, and loading compares the
two on a sample before it trusts this module):

* a caption is computed up to its end mark: under a causal mask nothing before it sees what follows;
* for the same reason captions that begin alike ("a man in a red ...") share the states of what they begin
  with, so the captions of a batch are computed as a tree of tokens, each of its nodes once;
* the last block is computed for the one token that is pooled;
* patches are multiplied as a matrix; biases, residuals and QuickGELU's factors ride along in the products:
  x sigmoid(1.702 x) = silu(1.702 x) / 1.702.

A tower whose structure is not exactly the known one gets none: `image_tower` and `text_tower` return None,
and the library's own forward is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.scorers.runtime import import_torch

#: Factor of QuickGELU (Hendrycks and Gimpel, arXiv:1606.08415, section 2).
QUICK = 1.702


@dataclass(frozen=True, eq=False)
class FastImageTower:
    """A vision transformer that pools its class token; calls take (batch, 3, size, size) pixels."""

    visual: Any

    def __call__(self, pixels: Any) -> Any:
        """(batch, width) features, not normalised."""
        torch = import_torch()
        functional = torch.nn.functional
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
class FastTextTower:
    """A causal text transformer that pools the end mark; calls take token ids cut at it."""

    #: What holds token_embedding, positional_embedding, transformer, ln_final and text_projection.
    text: Any
    #: The id of the end mark, or None where it is the highest id of a text.
    end: int | None

    def cut(self, row: Sequence[int]) -> Sequence[int]:
        """The ids of a text up to its end mark."""
        end = max(row) if self.end is None else self.end
        # Without an end mark the library pools the first token, and so does this.
        return row[: row.index(end) + 1] if end in row else row[:1]

    def __call__(self, rows: Sequence[Sequence[int]]) -> Any:
        """(batch, width) features, not normalised."""
        x, layout = self._begun(rows)
        return self._projected(_pooled(x, self.text.transformer.resblocks, layout))

    def states(self, rows: Sequence[Sequence[int]]) -> Any:
        """(batch, longest, width) features of all tokens, not normalised.

        Behind a row's last token it stands again.
        """
        x, layout = self._begun(rows)
        for block in self.text.transformer.resblocks:
            _block(x, block, layout)
        return layout.spread(self._projected(x))

    def library_states(self, rows: Sequence[Sequence[int]]) -> Any:
        """The same from whole rows of ids, as long as the model reads, by the library's own blocks."""
        torch, text = import_torch(), self.text
        dtype = text.transformer.get_cast_dtype()
        ids = torch.tensor(rows, device=text.positional_embedding.device)
        x = text.token_embedding(ids).to(dtype) + text.positional_embedding.to(dtype)
        return self._projected(text.transformer(x, attn_mask=text.attn_mask))

    def _begun(self, rows: Sequence[Sequence[int]]) -> tuple[Any, "PackedLayout"]:
        """The (nodes, width) states before the first block, and how they lie in the rows."""
        torch = import_torch()
        tree = grow(rows)
        where = self.text.positional_embedding.device

        def there(numbers: Any) -> Any:
            return torch.tensor(numbers, device=where)

        layout = PackedLayout(
            len(rows), len(tree.nodes[0]), there(tree.nodes), there(tree.first), there(tree.ends)
        )
        x = self.text.token_embedding(there(tree.tokens))
        return x + self.text.positional_embedding[there(tree.depths)], layout

    def _projected(self, x: Any) -> Any:
        """States after the last block as they are compared: normed and projected."""
        torch = import_torch()
        x, projection = self.text.ln_final(x), self.text.text_projection
        if projection is None:
            return x
        return projection(x) if isinstance(projection, torch.nn.Module) else x @ projection


@dataclass(frozen=True)
class Tree:
    """Rows of tokens as a tree of what they begin with; a node is a token after all those before it."""

    #: Token and position of every node.
    tokens: list[int]
    depths: list[int]
    #: For every row the nodes it passes, all rows made equally long by repeating the last node.
    nodes: list[list[int]]
    #: For every node a place in the flattened `nodes` where it stands.
    first: list[int]
    #: The last position of every row.
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
    """How the (nodes, width) states of a tower lie in its (batch, length) sequences.

    Without a tree every place is a node of its own, in order, and the first token of a sequence is pooled.
    """

    batch: int
    length: int
    #: (batch, length) nodes.
    nodes: Any = None
    #: (nodes,) places in the flattened sequences.
    first: Any = None
    #: (batch,) positions of the tokens that are pooled.
    ends: Any = None

    def spread(self, states: Any) -> Any:
        """(nodes, width) to (batch, length, width)."""
        return states.view(self.batch, self.length, -1) if self.nodes is None else states[self.nodes]

    def gather(self, states: Any) -> Any:
        """(batch, length, width) to (nodes, width)."""
        states = states.reshape(self.batch * self.length, -1)
        return states if self.first is None else states[self.first]

    def pooled(self, states: Any) -> Any:
        """(nodes, width) to the (batch, width) of the tokens that are pooled."""
        if self.nodes is None:
            return states.view(self.batch, self.length, -1)[:, 0]
        return states[self.nodes.gather(1, self.ends[:, None])[:, 0]]


def image_tower(model: Any) -> FastImageTower | None:
    """The fast image tower of an open_clip model, or None where its structure is another."""
    torch = import_torch()
    from open_clip.transformer import VisionTransformer

    visual = model.visual
    known = (
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
    return FastImageTower(visual) if known else None


def text_tower(model: Any) -> FastTextTower | None:
    """The fast text tower of an open_clip model, or None where its structure is another.

    None where the tower is not causal, or pools anything but the end mark: there a text cannot be cut.
    """
    tower = causal_text(model)
    return tower if tower is not None and _known_blocks(tower.text.transformer) else None


def causal_text(model: Any) -> FastTextTower | None:
    """Where an open_clip model reads texts, if nothing behind the end mark matters; whatever its blocks.

    Its `cut` is exact; whether it may be called is for `text_tower` to say.
    """
    torch = import_torch()
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
    return FastTextTower(text, None if pool == "argmax" else end)


def _known_blocks(transformer: Any) -> bool:
    """Whether every block is open_clip's plain one: normalise, attend, add; normalise, multiply, add."""
    torch = import_torch()
    from open_clip.transformer import QuickGELU, ResidualAttentionBlock, Transformer

    def known(block: Any) -> bool:
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

    return type(transformer) is Transformer and all(known(block) for block in transformer.resblocks)


def _pooled(x: Any, blocks: Any, layout: PackedLayout) -> Any:
    """(batch, width) states of the pooled tokens after all blocks; (nodes, width) `x` is overwritten."""
    for block in blocks[:-1]:
        _block(x, block, layout)
    return _last_block(x, blocks[-1], layout)


def _block(x: Any, block: Any, layout: PackedLayout) -> None:
    """One block on all nodes, in place."""
    torch = import_torch()
    functional = torch.nn.functional
    attention = block.attn
    projected = functional.linear(block.ln_1(x), attention.in_proj_weight, attention.in_proj_bias)
    query, key, value = _heads(layout.spread(projected), 3, attention.num_heads)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=layout.nodes is not None)
    x += attention.out_proj.bias
    x.addmm_(layout.gather(mixed.transpose(1, 2)), attention.out_proj.weight.t())
    _add_mlp(x, block)


def _last_block(x: Any, block: Any, layout: PackedLayout) -> Any:
    """One block on the pooled tokens alone, which look at all others."""
    torch = import_torch()
    functional = torch.nn.functional
    attention, width = block.attn, x.shape[1]
    normed = block.ln_1(x)
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    projected = functional.linear(normed, weight[width:], bias[width:])
    key, value = _heads(layout.spread(projected), 2, attention.num_heads)
    query = functional.linear(layout.pooled(normed), weight[:width], bias[:width])
    (query,) = _heads(query[:, None], 1, attention.num_heads)
    seen = None
    if layout.ends is not None:
        places = torch.arange(layout.length, device=x.device)
        seen = (places <= layout.ends[:, None])[:, None, None]
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
    pooled = layout.pooled(x) + functional.linear(
        mixed.flatten(1), attention.out_proj.weight, attention.out_proj.bias
    )
    _add_mlp(pooled, block)
    return pooled


def _heads(states: Any, parts: int, heads: int) -> Any:
    """(batch, length, parts x width) to (parts, batch, heads, length, width of a head)."""
    batch, length, _ = states.shape
    return states.view(batch, length, parts, heads, -1).permute(2, 0, 3, 1, 4)


def _add_mlp(x: Any, block: Any) -> None:
    """Adds the two-layer network of (rows, width) `x` to it, in place."""
    torch = import_torch()
    functional = torch.nn.functional
    inner, outer, gelu = block.mlp.c_fc, block.mlp.c_proj, block.mlp.gelu
    quick = type(gelu) is not torch.nn.GELU
    scale = QUICK if quick else 1.0
    hidden = torch.addmm(inner.bias, block.ln_2(x), inner.weight.t(), beta=scale, alpha=scale)
    hidden = (
        functional.silu(hidden, inplace=True)
        if quick
        else functional.gelu(hidden, approximate=gelu.approximate)
    )
    x += outer.bias
    x.addmm_(hidden, outer.weight.t(), alpha=1.0 / scale)
