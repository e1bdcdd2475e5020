"""Heatmaps from the inside of cross-encoders: what words look at, and where they are carried to.

* ViLT, FLAVA and VisualBERT, one transformer over both: *rollout*, attention rollout over its layers from the
  class token and from each word; *transport*, the optimal transport of words to patches (or regions) on the
  last layer's states, by their cosine, as ViLT shows and pre-trains it (Kim et al. 2021, section 4.5).
* BLIP, BridgeTower and LXMERT, whose words look at the image: *grad-cam*, the cross-attention of a layer
  times the positive part of the gradient of the logit of a match, averaged over heads, as ALBEF and BLIP show
  it (Selvaraju et al. 2017; Li et al. 2021, section 5); two thirds up, layer 8 of 0 to 11 as there.
* BLIP-2, whose queries look at the image and at the words: *grad-cam* of the queries; a word's is that of the
  queries that read it, weighted by their attention to it times the positive part of its gradient.

Numbers of regions are painted into a grid: a cell gets the largest of the regions over its middle.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from math import isqrt
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray
from torch import Tensor, nn

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, ModelError
from counterfoil.metrics.heatmaps import WHOLE, Box, cosine_cost, rollout, transport
from counterfoil.models.base import Identity, prompted
from counterfoil.models.cross_encoder import TokenizedPairs
from counterfoil.models.dual import box_of
from counterfoil.models.hf_text import HfTokens
from counterfoil.models.images import Resized
from counterfoil.models.region_files import BOXES
from counterfoil.models.runtime import drawn_from

#: A row of numbers per token of a text, a column per cell of the grid over the picture.
TokenMaps = Float[ndarray, "tokens rows columns"]
#: Rows of numbers, one per patch or region, as grids.
Fill = Callable[[ndarray], ndarray]
#: Cells to a side of the grid into which regions are painted.
_CELLS = 24


@dataclass(frozen=True, eq=False)
class PairSaliency:
    """The heatmaps that a cross-encoder of transformers has in it."""

    identity: Identity
    matcher: Any
    tokens: HfTokens
    #: What the matcher reads of an image: by default its pixels.
    read: Callable[[Image], Any] = lambda image: np.asarray(image.decode())

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the model's family has."""
        kind, protocol = _kind(self.matcher), getattr(self.matcher, "protocol", "itm")
        if kind in _CROSSED:
            return ("grad-cam",) if protocol != "itc" else ()
        return ("rollout", "transport") if kind in _STREAMS and protocol == "itm" else ()

    def maps(
        self, method: str, image: Image, caption: Caption, parts: Sequence[tuple[int, int]]
    ) -> tuple[Float[ndarray, "rows columns"], Float[ndarray, "parts rows columns"]]:
        """The heatmap of the caption, and that of each of its parts (first letter, one behind the last).

        A part's is the mean over its tokens; 0 everywhere where the model does not read it, since the caption
        is too long. Raises `ModelError` where the tokenizer cannot tell where its tokens begin, `DataError`
        for regions without boxes.
        """
        (text,) = prompted(self.identity, [caption])
        ids, places = self._tokens(text)
        whole, tokens = _METHODS[method](self.matcher, self.read(image), ids)
        # The prompt moves the caption's letters.
        shift = self.identity.prompt.index("{}")
        part_maps = np.zeros((len(parts), *whole.shape))
        for row, (start, end) in zip(part_maps, parts, strict=True):
            own = [at for at, (a, b) in enumerate(places) if a < end + shift and b > start + shift]
            if own:
                row[:] = tokens[own].mean(axis=0)
        return whole, part_maps

    def box(self, image: Image) -> Box:
        """The part of the picture that the grid covers: BridgeTower looks at the square in the middle."""
        if _kind(self.matcher) == "BridgeTower":
            return box_of(Resized(1), image.decode().size)
        return WHOLE

    def _tokens(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text, and the letters that each is of; none of marks."""
        (ids,), options = self.tokens.ids([text]), {"truncation": True, "max_length": self.tokens.length}
        try:
            read = self.tokens.tokenizer(text, return_offsets_mapping=True, **options)
        except NotImplementedError:
            problem = "its tokenizer does not say which letters a token is of"
            hint = "--method occlusion needs no tokens"
            raise ModelError(problem, where=self.identity.name, hint=hint) from None
        return ids, [(int(a), int(b)) for a, b in read["offset_mapping"]]


class Stream(NamedTuple):
    """What one transformer over words and patches computes of a pair."""

    #: (heads, places, places) of each layer; the class token of the pair is at place 0.
    attentions: Sequence[ndarray]
    #: (places, width), after the last norm.
    states: ndarray
    #: Places of the text's tokens, marks included, and of patches or regions.
    words: slice
    patches: slice
    fill: Fill


def of_rollout(matcher: Any, inputs: Any, ids: Sequence[int]) -> tuple[ndarray, TokenMaps]:
    """Attention rollout: of the class token, and of every token of the text."""
    stream = _STREAMS[_kind(matcher)](matcher, inputs, ids)
    flow = rollout(stream.attentions)
    return stream.fill(flow[:1, stream.patches])[0], stream.fill(flow[stream.words, stream.patches])


def of_transport(matcher: Any, inputs: Any, ids: Sequence[int]) -> tuple[ndarray, TokenMaps]:
    """How much of each token is carried to each patch, summing to 1; of the whole how well they agree.

    The marks of begin and end and the picture's class token take no part. The whole is the mean cosine of
    what is carried to a patch with it.
    """
    stream = _STREAMS[_kind(matcher)](matcher, inputs, ids)
    words, patches = stream.states[stream.words], stream.states[stream.patches]
    cost = cosine_cost(words[1:-1], patches)
    plan = transport(cost)
    maps = np.zeros((len(words), cost.shape[1]))
    maps[1:-1] = plan * len(plan)
    whole = ((1 - cost) * plan).sum(axis=0, keepdims=True) * cost.shape[1]
    return stream.fill(whole)[0], stream.fill(maps)


def _vilt(matcher: Any, picture: ndarray, ids: Sequence[int]) -> Stream:
    """ViLT: words, then a class token of the picture and its patches."""
    embed, inputs = matcher.model.vilt.embeddings.visual_embed, matcher.pixels([picture])
    most = matcher.model.config.max_image_length
    with torch.no_grad(), drawn_from(0):
        pixels = inputs["pixel_values"], inputs["pixel_mask"]
        patches, mask, (places, size) = embed(*pixels, max_image_length=most)
        tokens = torch.tensor([list(ids)], device=matcher.device)
        output = matcher.model(
            input_ids=tokens,
            attention_mask=torch.ones_like(tokens),
            image_embeds=patches,
            pixel_mask=mask,
            output_attentions=True,
            output_hidden_states=True,
        )
        states = matcher.model.vilt.layernorm(output.hidden_states[-1])
    # Patches come in an order that is drawn, and of large pictures not all of them.
    where = tuple(places[0].cpu().numpy().T)

    def fill(rows: ndarray) -> ndarray:
        grids = np.zeros((len(rows), *size))
        grids[(slice(None), *where)] = rows
        return grids

    return _stream(output.attentions, states, slice(0, len(ids)), slice(len(ids) + 1, None), fill)


def _flava(matcher: Any, picture: ndarray, ids: Sequence[int]) -> Stream:
    """FLAVA: a class token of the pair, one of the picture and its patches, then words."""
    with torch.no_grad():
        (states,) = matcher.images([picture])
        output = matcher.together(list(states), _pair(matcher, ids), output_attentions=True)
    before = int(matcher.model.flava.multimodal_model.use_cls_token)
    first, behind = before + 1, before + len(states[0])
    words = slice(behind, behind + len(ids))
    return _stream(output.attentions, output.last_hidden_state, words, slice(first, behind), squared)


def _visual_bert(matcher: Any, regions: Any, ids: Sequence[int]) -> Stream:
    """VisualBERT: words, then regions."""
    with torch.no_grad():
        output = matcher.together(matcher.images([regions]), _pair(matcher, ids), output_attentions=True)
    words, places = slice(0, len(ids)), slice(len(ids), None)
    fill = painted(regions, matcher.where)
    return _stream(output.attentions, output.last_hidden_state, words, places, fill)


def _stream(attentions: Any, states: Tensor, words: slice, patches: slice, fill: Fill) -> Stream:
    layers = [layer[0].float().cpu().numpy() for layer in attentions]
    return Stream(layers, states[0].float().cpu().numpy(), words, patches, fill)


def of_gradient(matcher: Any, inputs: Any, ids: Sequence[int]) -> tuple[ndarray, TokenMaps]:
    """Gradient-weighted cross-attention of every token; of the whole the mean over the caption's."""
    maps = _CROSSED[_kind(matcher)](matcher, inputs, ids)
    if isinstance(maps, tuple):
        return maps
    return maps[1:-1].mean(axis=0) if len(ids) > 2 else maps.mean(axis=0), maps


def _blip(matcher: Any, picture: ndarray, ids: Sequence[int]) -> TokenMaps:
    """BLIP: the words of its text encoder look at patches."""
    model = matcher.model
    text = torch.tensor([list(ids)], device=matcher.device)
    if matcher.protocol == "retrieval":
        text[:, 0] = matcher.encoder_token()
    layers = model.text_encoder.encoder.layer

    def logit() -> Tensor:
        states = model.vision_model(**matcher.pixels([picture])).last_hidden_state.detach()
        last = model.text_encoder(
            input_ids=text,
            attention_mask=torch.ones_like(text),
            encoder_hidden_states=states.requires_grad_(),
            encoder_attention_mask=torch.ones(states.shape[:2], device=states.device, dtype=torch.long),
        ).last_hidden_state
        return model.itm_head(last[:, 0])[0, 1]

    (weighted,) = _weighted(logit, [_inner(layers).crossattention.self])
    return squared(weighted[:, 1:])


def _bridge_tower(matcher: Any, picture: ndarray, ids: Sequence[int]) -> TokenMaps:
    """BridgeTower: the words of the layers that read both look at patches."""
    layer = _inner(matcher.model.bridgetower.cross_modal_text_layers)
    head, modules = matcher.model.itm_score, [layer.crossattention.self]
    with _eager(modules[0].config):
        (weighted,) = _weighted(lambda: _logit(matcher, head, picture, ids), modules)
    return squared(weighted[:, 1:])


def _blip2(matcher: Any, picture: ndarray, ids: Sequence[int]) -> tuple[ndarray, TokenMaps]:
    """BLIP-2: queries look at patches and at words; of the whole the mean over queries."""
    layers = matcher.model.qformer.encoder.layer
    layer = _inner([block for block in layers if block.has_cross_attention])
    modules = [layer.crossattention.attention, layer.attention.attention]
    tokens = matcher.model.query_tokens
    before = tokens.requires_grad
    # Attention among queries and words comes before the picture, and has a gradient through the queries.
    tokens.requires_grad_(True)
    try:
        with _eager(modules[0].config):
            seen, read = _weighted(lambda: _logit(matcher, matcher.model.itm_head, picture, ids), modules)
    finally:
        tokens.requires_grad_(before)
    many = len(seen)
    maps = squared(seen[:, 1:])
    share = read[:many, many:].T
    share = share / np.maximum(share.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    return maps.mean(axis=0), np.einsum("wq,qrc->wrc", share, maps)


def _lxmert(matcher: Any, regions: Any, ids: Sequence[int]) -> TokenMaps:
    """LXMERT: words look at regions."""
    attention = _inner(matcher.model.lxmert.encoder.x_layers).visual_attention.att
    fill = painted(regions, matcher.where)
    head = matcher.model.cls.seq_relationship
    with attention.register_forward_pre_hook(
        lambda _, args, kwargs: (args, {**kwargs, "output_attentions": True}), with_kwargs=True
    ):
        # The same weights let regions look at words, in the second call.
        (weighted,) = _weighted(lambda: _logit(matcher, head, regions, ids), [attention])
    return fill(weighted)


def _inner(layers: Any) -> Any:
    """The layer two thirds up; never the last: there the head reads [CLS] alone, not the words."""
    return layers[max(0, min(2 * len(layers) // 3, len(layers) - 2))]


def _logit(matcher: Any, head: nn.Module, inputs: Any, ids: Sequence[int]) -> Tensor:
    """The logit of a match that `head` gives of a pair, the mean where it gives several."""
    with torch.no_grad():
        (computed,) = matcher.images([inputs])
    state = tuple(part.requires_grad_() if part.is_floating_point() else part for part in computed)
    logits: list[Tensor] = []
    with head.register_forward_hook(lambda _, args, output: logits.append(output)):
        matcher.score([state], _pair(matcher, ids))
    return logits[0][..., getattr(matcher, "match", 1)].mean()


def _pair(matcher: Any, ids: Sequence[int]) -> TokenizedPairs:
    text = torch.tensor([list(ids)], device=matcher.device)
    first = torch.zeros(1, dtype=torch.long, device=matcher.device)
    return TokenizedPairs(text, torch.ones_like(text), first, first)


def _weighted(
    logit: Callable[[], Tensor], modules: Sequence[nn.Module]
) -> list[Float[ndarray, "rows places"]]:
    """The attention of modules, at their first call, times the positive part of the gradient of a logit."""
    seen: dict[int, Tensor] = {}
    with ExitStack() as hooks, torch.enable_grad():
        for at, module in enumerate(modules):
            hooks.enter_context(module.register_forward_hook(partial(_keep, seen, at)))
        value = logit()
        attentions = [seen[at] for at in range(len(modules))]
        gradients = torch.autograd.grad(value, attentions)
    return [
        (attention * gradient.clamp(min=0))[0].mean(dim=0).detach().double().cpu().numpy()
        for attention, gradient in zip(attentions, gradients, strict=True)
    ]


def _keep(seen: dict[int, Tensor], at: int, module: nn.Module, args: Any, output: Any) -> None:
    """A hook that keeps the weights of a module's first call; it returns nothing, so the output stays."""
    seen.setdefault(at, output[1])


@contextmanager
def _eager(config: Any) -> Iterator[None]:
    """With attention computed step by step, so that its weights can be had."""
    before = config._attn_implementation
    config._attn_implementation = "eager"
    try:
        yield
    finally:
        config._attn_implementation = before


def squared(rows: Float[ndarray, "tokens patches"]) -> TokenMaps:
    """Rows of numbers of patches in a square.

    >>> squared(np.arange(4.0)[None]).tolist()
    [[[0.0, 1.0], [2.0, 3.0]]]
    """
    side = isqrt(rows.shape[1])
    return rows.reshape(len(rows), side, side)


def painted(regions: Any, where: object) -> Fill:
    """What paints numbers of regions into a grid; raises `DataError` for regions without boxes."""
    if regions.boxes is None:
        problem = "the regions have no boxes, so nothing says where in the picture they are"
        raise DataError(problem, where=where, hint=BOXES)
    middle = (np.arange(_CELLS) + 0.5) / _CELLS
    left, top, right, bottom = regions.boxes.T[:, :, None]
    across, down = (left <= middle) & (middle < right), (top <= middle) & (middle < bottom)
    over = down[:, :, None] & across[:, None, :]

    def fill(rows: ndarray) -> ndarray:
        grids: ndarray = np.where(over, rows[:, :, None, None], -np.inf).max(axis=1)
        return np.where(over.any(axis=0), grids, 0.0)

    return fill


def _kind(matcher: Any) -> str:
    return type(matcher).__name__


#: What computes the words and patches of one transformer, and the weighted attention of words, by family.
_STREAMS: Mapping[str, Callable[[Any, Any, Sequence[int]], Stream]] = {
    "Vilt": _vilt,
    "Flava": _flava,
    "VisualBert": _visual_bert,
}
_CROSSED: Mapping[str, Callable[[Any, Any, Sequence[int]], Any]] = {
    "Blip": _blip,
    "Blip2": _blip2,
    "BridgeTower": _bridge_tower,
    "Lxmert": _lxmert,
}
_METHODS = {"rollout": of_rollout, "transport": of_transport, "grad-cam": of_gradient}
