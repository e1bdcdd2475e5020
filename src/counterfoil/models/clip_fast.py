"""CLIP's text tower in fewer operations, for scoring only.

Equal to the tower of open_clip up to rounding (tests require 1e-5 on unit vectors). `agreeing` compares both
on a sample when a model is loaded, and only a tower that agrees is used. Savings:

* a caption is computed up to its end mark: under a causal mask nothing before it sees what follows;
* for the same reason captions with a common prefix ("a man in a red ...") share the states of that prefix, so
  the captions of a batch are computed as a tree of tokens, each node once;
* biases, residuals and QuickGELU's factors are part of the matrix products:
  x sigmoid(1.702 x) = silu(1.702 x) / 1.702.

For any other structure `agreeing` returns None, and the library's own forward is used.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn import functional

#: Factor of QuickGELU (Hendrycks and Gimpel, arXiv:1606.08415, section 2).
QUICK = 1.702


@dataclass(frozen=True, eq=False)
class CausalText:
    """A causal text transformer of open_clip that pools the end mark, so that texts may be cut behind it."""

    #: The module with token_embedding, positional_embedding, transformer, ln_final and text_projection.
    text: Any
    #: The id of the end mark, or None where it is the highest id of a text.
    end: int | None

    def cut(self, row: Sequence[int]) -> Sequence[int]:
        """The ids of a text up to its end mark; the first alone where there is none, which is then pooled."""
        end = max(row) if self.end is None else self.end
        return row[: row.index(end) + 1] if end in row else row[:1]

    def ends(self, tokens: Any) -> Any:
        """(batch,) positions of the end marks in (batch, length) ids; 0 where there is none."""
        return tokens.argmax(dim=-1) if self.end is None else (tokens == self.end).int().argmax(dim=-1)

    def hidden(self, tokens: Any) -> Any:
        """(batch, length) ids, of any length up to the model's, to (batch, length, width) normed states."""
        text, length = self.text, tokens.shape[1]
        dtype = text.transformer.get_cast_dtype()
        x = text.token_embedding(tokens).to(dtype) + text.positional_embedding[:length].to(dtype)
        return text.ln_final(text.transformer(x, attn_mask=text.attn_mask[:length, :length]))

    def projected(self, states: Any) -> Any:
        """Normed states in the space of the images."""
        projection = self.text.text_projection
        if projection is None:
            return states
        return projection(states) if isinstance(projection, torch.nn.Module) else states @ projection

    def states(self, rows: Sequence[Sequence[int]]) -> Any:
        """(batch, length, width) features of all tokens of full-length rows of ids, not normalised."""
        ids = torch.tensor(rows, device=self.text.positional_embedding.device)
        return self.projected(self.hidden(ids))


@dataclass(frozen=True, eq=False)
class FastTextTower(CausalText):
    """The same tower in fewer operations; calls take token ids, which are cut at the end mark."""

    def __call__(self, rows: Sequence[Sequence[int]]) -> Any:
        """(batch, width) features, not normalised."""
        tree, x = self._states(rows)
        ends = torch.tensor([nodes[end] for nodes, end in zip(tree.nodes, tree.ends, strict=True)])
        return self.projected(self.text.ln_final(x[ends.to(x.device)]))

    def states(self, rows: Sequence[Sequence[int]]) -> Any:
        """(batch, longest, width) features of all tokens up to the end mark, not normalised.

        Behind its last token a row repeats it.
        """
        tree, x = self._states(rows)
        return self.projected(self.text.ln_final(x))[torch.tensor(tree.nodes, device=x.device)]

    def _states(self, rows: Sequence[Sequence[int]]) -> tuple["Tree", Any]:
        """The rows as a tree, and the (nodes, width) states after all blocks."""
        tree, device = grow([self.cut(row) for row in rows]), self.text.positional_embedding.device
        nodes, first, tokens, depths = (
            torch.tensor(numbers, dtype=torch.int64, device=device)
            for numbers in (tree.nodes, tree.first, tree.tokens, tree.depths)
        )
        x = self.text.token_embedding(tokens) + self.text.positional_embedding[depths]
        for block in self.text.transformer.resblocks:
            _block(x, block, nodes, first)
        return tree, x


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


def plain_vision(model: Any) -> bool:
    """Whether an open_clip model has open_clip's vision transformer that pools its class token."""
    from open_clip.transformer import VisionTransformer

    visual = model.visual
    return (
        type(visual) is VisionTransformer
        and visual.attn_pool is None
        and visual.pool_type == "tok"
        and not visual.output_tokens
        and _known_blocks(visual.transformer)
    )


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
    return CausalText(text, None if pool == "argmax" else end)


def agreeing(model: Any, rows: Sequence[Sequence[int]], *, tolerance: float) -> FastTextTower | None:
    """The fast text tower where it answers a sample as the model's own does, on its device; else None.

    None as well where texts may not be cut, or its blocks are others. The sample is full-length ids of texts
    (`rows`), `tolerance` the largest difference allowed between components of unit vectors.
    """
    tower = causal_text(model)
    if tower is None or not _known_blocks(tower.text.transformer):
        return None
    fast = FastTextTower(tower.text, tower.end)
    with torch.inference_mode():
        plain = model.encode_text(torch.tensor(rows, device=next(model.parameters()).device))
        one, other = (functional.normalize(x.float(), dim=-1) for x in (fast(rows), plain))
    return fast if bool((one - other).abs().max() <= tolerance) else None


def _known_blocks(transformer: Any) -> bool:
    """Whether every block is open_clip's plain one: normalise, attend, add; normalise, multiply, add."""
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


def _block(x: Any, block: Any, nodes: Any, first: Any) -> None:
    """One block on all nodes (nodes, width), in place.

    `nodes` (batch, length) are those of each row, and `first` is where each stands in the flattened rows.
    """
    attention = block.attn
    projected = functional.linear(block.ln_1(x), attention.in_proj_weight, attention.in_proj_bias)
    batch, length = nodes.shape
    spread = projected[nodes].view(batch, length, 3, attention.num_heads, -1)
    query, key, value = spread.permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
    x += attention.out_proj.bias
    rows = mixed.transpose(1, 2).reshape(batch * length, -1)
    x.addmm_(rows[first], attention.out_proj.weight.t())
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
