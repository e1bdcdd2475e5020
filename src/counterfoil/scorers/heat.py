"""Heatmaps from the inside of cross-encoders: what words look at, and which patches they are carried to.

* ViLT, *rollout*: attention rollout over all layers, from the class token and from each word to the patches.
* ViLT, *transport*: the optimal transport of words to patches on the last layer's states, by their cosine,
  as ViLT shows and pre-trains it (Kim et al. 2021, section 4.5; UNITER before it).
* BLIP, *grad-cam*: the cross-attention of a layer times the positive part of the gradient of the logit of a
  match, averaged over heads, as ALBEF and BLIP show it (Selvaraju et al. 2017; Li et al. 2021, section 5);
  two thirds up, layer 8 of 0 to 11 as there.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image
from counterfoil.errors import ModelError
from counterfoil.metrics.attention import cosine_cost, rollout, transport
from counterfoil.scorers.base import Identity, prompted
from counterfoil.scorers.hf_text import HfTokens
from counterfoil.scorers.itm_families import Blip, Family, Vilt

#: A row of numbers per token of a text, a column per cell of the grid over the picture.
TokenMaps = Float[ndarray, "tokens rows columns"]


@dataclass(frozen=True, eq=False)
class PairHeats:
    """The heatmaps that a cross-encoder of transformers has in it."""

    identity: Identity
    matcher: Family
    tokens: HfTokens

    @property
    def methods(self) -> tuple[str, ...]:
        """The methods that the model's family has."""
        if isinstance(self.matcher, Blip):
            return ("grad-cam",) if self.matcher.protocol != "itc" else ()
        return ("rollout", "transport") if isinstance(self.matcher, Vilt) else ()

    def maps(
        self, method: str, image: Image, caption: Caption, parts: Sequence[tuple[int, int]]
    ) -> tuple[Float[ndarray, "rows columns"], Float[ndarray, "parts rows columns"]]:
        """The heatmap of the caption, and that of each of its parts (first letter, one behind the last).

        A part's is the mean over its tokens; 0 everywhere where the model does not read it, since the caption
        is too long. Raises `ModelError` where the tokenizer cannot tell where its tokens begin.
        """
        (text,) = prompted(self.identity, [caption])
        ids, places = self._tokens(text)
        whole, tokens = _METHODS[method](self.matcher, np.asarray(image.decode()), ids)
        # The prompt moves the caption's letters.
        shift = self.identity.prompt.index("{}")
        found = np.zeros((len(parts), *whole.shape))
        for row, (start, end) in zip(found, parts, strict=True):
            own = [at for at, (a, b) in enumerate(places) if a < end + shift and b > start + shift]
            if own:
                row[:] = tokens[own].mean(axis=0)
        return whole, found

    def _tokens(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """The ids of a text, and the letters that each is of; none of marks."""
        (ids,) = self.tokens.ids([text])
        try:
            read = self.tokens.tokenizer(
                text, truncation=True, max_length=self.tokens.length, return_offsets_mapping=True
            )
        except NotImplementedError:
            raise ModelError(
                "its tokenizer does not say which letters a token is of",
                where=self.identity.name,
                hint="--method occlusion needs no tokens",
            ) from None
        return ids, [(int(a), int(b)) for a, b in read["offset_mapping"]]


def vilt_rollout(matcher: Any, picture: ndarray, ids: Sequence[int]) -> tuple[ndarray, TokenMaps]:
    """Attention rollout: of the class token, and of every token of the text."""
    output, text, fill = _vilt(matcher, picture, ids)
    found = rollout([layer[0].float().cpu().numpy() for layer in output.attentions])
    maps = fill(found[:text, text + 1 :])
    return maps[0], maps


def vilt_transport(matcher: Any, picture: ndarray, ids: Sequence[int]) -> tuple[ndarray, TokenMaps]:
    """How much of each token is carried to each patch, summing to 1; of the whole how well they agree.

    The marks of begin and end and the picture's class token take no part. The whole is the mean cosine of
    what is carried to a patch with it.
    """
    output, text, fill = _vilt(matcher, picture, ids)
    with torch.no_grad():
        states = matcher.model.vilt.layernorm(output.hidden_states[-1])[0].float().cpu().numpy()
    cost = cosine_cost(states[1 : text - 1], states[text + 1 :])
    plan = transport(cost)
    maps = np.zeros((text, cost.shape[1]))
    maps[1 : text - 1] = plan * len(plan)
    return fill(((1 - cost) * plan).sum(axis=0, keepdims=True) * cost.shape[1])[0], fill(maps)


def _vilt(matcher: Any, picture: ndarray, ids: Sequence[int]) -> tuple[Any, int, Any]:
    """What the model computes of one pair, the number of text tokens, and rows of patches as grids."""
    embeddings, inputs = matcher.model.vilt.embeddings, matcher.pixels([picture])
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        patches, mask, (places, size) = embeddings.visual_embed(
            inputs["pixel_values"],
            inputs["pixel_mask"],
            max_image_length=matcher.model.config.max_image_length,
        )
        tokens = torch.tensor([list(ids)], device=matcher.device)
        output = matcher.model(
            input_ids=tokens,
            attention_mask=torch.ones_like(tokens),
            image_embeds=patches,
            pixel_mask=mask,
            output_attentions=True,
            output_hidden_states=True,
        )
    # Patches come in an order that is drawn, and of large pictures not all of them.
    where = tuple(places[0].cpu().numpy().T)

    def fill(rows: ndarray) -> ndarray:
        grids = np.zeros((len(rows), *size))
        grids[(slice(None), *where)] = rows
        return grids

    return output, len(ids), fill


def blip_grad_cam(matcher: Any, picture: ndarray, ids: Sequence[int]) -> tuple[ndarray, TokenMaps]:
    """Gradient-weighted cross-attention of every token; of the whole the mean over the caption's."""
    model = matcher.model
    text = torch.tensor([list(ids)], device=matcher.device)
    if matcher.protocol == "retrieval":
        text[:, 0] = matcher.encoder_token()
    layers = model.text_encoder.encoder.layer
    seen: list[Any] = []
    # Never the last: there the head reads [CLS] alone, and no word has a gradient.
    at = max(0, min(2 * len(layers) // 3, len(layers) - 2))
    handle = layers[at].crossattention.self.register_forward_hook(
        lambda _, args, output: seen.append(output[1])
    )
    try:
        with torch.enable_grad():
            states = model.vision_model(**matcher.pixels([picture])).last_hidden_state.detach()
            last = model.text_encoder(
                input_ids=text,
                attention_mask=torch.ones_like(text),
                encoder_hidden_states=states.requires_grad_(),
                encoder_attention_mask=torch.ones(states.shape[:2], device=states.device, dtype=torch.long),
            ).last_hidden_state
            (attention,) = seen
            (gradient,) = torch.autograd.grad(model.itm_head(last[:, 0])[0, 1], attention)
    finally:
        handle.remove()
    weighted = (attention * gradient.clamp(min=0))[0].mean(dim=0).detach().float().cpu().numpy()
    side = isqrt(weighted.shape[1] - 1)
    maps = weighted[:, 1:].reshape(len(ids), side, side)
    return maps[1:-1].mean(axis=0) if len(ids) > 2 else maps.mean(axis=0), maps


_METHODS = {"rollout": vilt_rollout, "transport": vilt_transport, "grad-cam": blip_grad_cam}
