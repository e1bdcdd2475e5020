"""CLIP's towers without the work that no score depends on.

Equal to the towers of open_clip up to rounding (the tests hold 1e-5 on unit vectors, and loading compares the
two on a sample before it trusts this module):

* a caption is computed up to its end mark: under a causal mask nothing before it sees what follows;
* the last block is computed for the one token that is pooled;
* patches are multiplied as a matrix; biases, residuals and QuickGELU's factors ride along in the products:
  x sigmoid(1.702 x) = silu(1.702 x) / 1.702.

A tower whose structure is not exactly the known one gets none: `image_tower` and `text_tower` return None,
and the library's own forward is used.
"""

from dataclasses import dataclass
from typing import Any

from counterfoil.scorers.dual import import_torch

#: Factor of QuickGELU (Hendrycks and Gimpel, arXiv:1606.08415, section 2).
QUICK = 1.702


@dataclass(frozen=True, eq=False)
class ImageTower:
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
        x = visual.ln_pre(x)
        first = torch.zeros(batch, dtype=torch.long, device=x.device)
        x = visual.ln_post(_pooled(x, visual.transformer.resblocks, first, causal=False))
        return x if visual.proj is None else x @ visual.proj


@dataclass(frozen=True, eq=False)
class TextTower:
    """A causal text transformer that pools the end mark; calls take (batch, context) token ids."""

    #: What holds token_embedding, positional_embedding, transformer, ln_final and text_projection.
    text: Any
    #: The id of the end mark, or None where it is the highest id of a text.
    end: int | None

    def ends(self, ids: Any) -> Any:
        """(batch,) positions of the end marks."""
        return ids.argmax(dim=-1) if self.end is None else (ids == self.end).int().argmax(dim=-1)

    def __call__(self, ids: Any) -> Any:
        """(batch, width) features, not normalised."""
        torch = import_torch()
        ends = self.ends(ids)
        # Nothing after the last end mark of the batch can change a pooled token.
        ids = ids[:, : int(ends.max()) + 1]
        x = self.text.token_embedding(ids) + self.text.positional_embedding[: ids.shape[1]]
        x = self.text.ln_final(_pooled(x, self.text.transformer.resblocks, ends, causal=True))
        projection = self.text.text_projection
        if projection is None:
            return x
        return projection(x) if isinstance(projection, torch.nn.Module) else x @ projection


def image_tower(model: Any) -> ImageTower | None:
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
    return ImageTower(visual) if known else None


def text_tower(model: Any) -> TextTower | None:
    """The fast text tower of an open_clip model, or None where its structure is another.

    None where the tower is not causal, or pools anything but the end mark: there a text cannot be cut.
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
    if pool not in ("argmax", "eos") or text.attn_mask is None or not _known_blocks(text.transformer):
        return None
    context = len(text.positional_embedding)
    causal = torch.full((context, context), float("-inf")).triu_(1)
    if not torch.equal(text.attn_mask.cpu().float(), causal):
        return None
    return TextTower(text, None if pool == "argmax" else end)


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


def _pooled(x: Any, blocks: Any, at: Any, *, causal: bool) -> Any:
    """(batch, width) states of the tokens `at` after all blocks; (batch, length, width) `x` is used up."""
    for block in blocks[:-1]:
        _block(x, block, causal=causal)
    return _last_block(x, blocks[-1], at, causal=causal)


def _block(x: Any, block: Any, *, causal: bool) -> None:
    """One block on all tokens, in place."""
    torch = import_torch()
    functional = torch.nn.functional
    batch, length, width = x.shape
    attention = block.attn
    projected = functional.linear(block.ln_1(x), attention.in_proj_weight, attention.in_proj_bias)
    query, key, value = projected.view(batch, length, 3, attention.num_heads, -1).permute(2, 0, 3, 1, 4)
    mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=causal)
    flat = x.view(batch * length, width)
    flat += attention.out_proj.bias
    flat.addmm_(mixed.transpose(1, 2).reshape(batch * length, width), attention.out_proj.weight.t())
    _add_mlp(flat, block)


def _last_block(x: Any, block: Any, at: Any, *, causal: bool) -> Any:
    """One block on the tokens `at` alone, which look at all others."""
    torch = import_torch()
    functional = torch.nn.functional
    batch, length, width = x.shape
    attention = block.attn
    each = torch.arange(batch, device=x.device)
    normed = block.ln_1(x)
    weight, bias = attention.in_proj_weight, attention.in_proj_bias
    key, value = (
        functional.linear(normed, weight[width:], bias[width:])
        .view(batch, length, 2, attention.num_heads, -1)
        .permute(2, 0, 3, 1, 4)
    )
    query = functional.linear(normed[each, at], weight[:width], bias[:width])
    query = query.view(batch, attention.num_heads, 1, -1)
    seen = (torch.arange(length, device=x.device) <= at[:, None])[:, None, None] if causal else None
    mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=seen)
    pooled = x[each, at] + functional.linear(
        mixed.reshape(batch, width), attention.out_proj.weight, attention.out_proj.bias
    )
    _add_mlp(pooled, block)
    return pooled


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
