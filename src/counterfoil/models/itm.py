"""Cross-encoders of the package transformers for scoring: `itm:NAME_OR_FOLDER`.

BLIP, BLIP-2, ViLT, FLAVA and BridgeTower. Where a family has several ways to score a pair, the setting
`protocol` names one; the setting `length` cuts captions to fewer tokens than the model reads.

Each family follows its model's own `forward` and leaves out what a score does not need: losses, masked second
passes, and above all the image tower, which runs once for all captions of an image. Tests hold each to the
library's call for one pair at a time.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor
from torch.nn.functional import normalize, scaled_dot_product_attention

from counterfoil.errors import ModelError, UnknownNameError
from counterfoil.models import hf_loading as loading
from counterfoil.models.base import DEFAULT, Options
from counterfoil.models.cross_encoder import CrossEncoder, Matcher, State, TokenizedPairs, padded, probability
from counterfoil.models.hf_text import HfTokens
from counterfoil.models.images import Untouched, prepared
from counterfoil.models.runtime import LoadContext, drawn_from, to_device
from counterfoil.models.saliency import (
    PairSaliency,
    Stream,
    TokenMaps,
    eager_attention,
    inner_layer,
    match_logit,
    one_pair,
    squared,
    stream_of,
    weighted_attention,
)


@dataclass(frozen=True, eq=False)
class Family(Matcher):
    """A model with its image processor, on its device, and how it is asked."""

    #: The class of transformers, and the ways to score a pair, the default first.
    kind: ClassVar[str]
    protocols: ClassVar[tuple[str, ...]] = ("itm",)
    #: The part of the configuration that says how many tokens the model reads.
    text: ClassVar[str] = "text_config"
    #: Parameters that no score depends on.
    unused: ClassVar[str] = ""
    #: The most tokens of a caption by protocol, where published numbers are of fewer than the model reads.
    lengths: ClassVar[dict[str, int]] = {}

    model: Any
    processor: Any
    tokenizer: Any
    device: Any
    dtype: torch.dtype
    protocol: str
    where: str

    def pixels(self, pictures: Sequence[ndarray], **options: Any) -> Any:
        """What the image processor makes of pictures, on the device; floats in the model's type."""
        whole = [PIL.Image.fromarray(picture) for picture in pictures]
        return self.processor(images=whole, return_tensors="pt", **options).to(self.device, self.dtype)


def cosines(images: Sequence[Tensor], captions: Tensor, pairs: TokenizedPairs) -> Tensor:
    """The cosine of each pair's image with its caption, unit vectors both."""
    stacked = torch.stack(list(images))
    return (stacked[pairs.image_of].float() * captions[pairs.caption_of].float()).sum(dim=-1)


class Blip(Family):
    """BLIP (Li et al. 2022): a BERT whose layers look at the patches of the image.

    Protocols: `itm`, the matching head's probability at the token [CLS], as in BLIP's demo and in
    transformers; `retrieval`, the matching head's logit at BLIP's encoder token, plus the cosine `itc`,
    captions cut to 35 tokens, as ARO and What'sUp measure; `itc`, the cosine of the two towers.
    """

    kind = "BlipForImageTextRetrieval"
    protocols = ("itm", "retrieval", "itc")
    lengths: ClassVar[dict[str, int]] = {"retrieval": 35}

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
        """The states of all patches, and the unit vector of the whole."""
        states = self.model.vision_model(**self.pixels(pictures)).last_hidden_state
        whole = normalize(self.model.vision_proj(states[:, 0]), dim=-1)
        return list(zip(states, whole, strict=True))

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        """Probabilities in [0, 1]; cosines in [-1, 1]; of `retrieval` a logit plus a cosine."""
        if self.protocol == "itm":
            return probability(self._logits([states for states, _ in images], pairs, pairs.ids))
        text = self.model.text_encoder(input_ids=pairs.ids, attention_mask=pairs.mask).last_hidden_state
        captions = normalize(self.model.text_proj(text[:, 0]), dim=-1)
        cosine = cosines([whole for _, whole in images], captions, pairs)
        if self.protocol == "itc":
            return cosine
        ids = pairs.ids.clone()
        ids[:, 0] = self.encoder_token()
        return self._logits([states for states, _ in images], pairs, ids)[:, 1].float() + cosine

    def encoder_token(self) -> int:
        """The id of BLIP's token [ENC], which the retrieval protocol puts in the place of [CLS].

        It follows [DEC] at the end of the vocabulary, where the tokenizers of transformers name neither.
        Raises `ModelError` where the vocabulary has no room for both.
        """
        known = self.tokenizer.get_vocab().get("[ENC]")
        size = int(self.model.config.text_config.vocab_size)
        if known is None and size != len(self.tokenizer) + 2:
            problem = "the vocabulary has no encoder token [ENC], which the retrieval protocol needs"
            given = f"{size} rows for a tokenizer of {len(self.tokenizer)}"
            raise ModelError(problem, where=self.where, given=given, hint="use --set protocol=itm")
        return size - 1 if known is None else int(known)

    def _logits(self, images: Sequence[Tensor], pairs: TokenizedPairs, ids: Tensor) -> Tensor:
        """(pairs, 2) of the matching head.

        Keys and values of an image's patches are computed once for its captions, whose queries stand one
        after another: that is most of the work, as there are many more patches than words.
        """
        patches = torch.stack(list(images))
        hidden = self.model.text_encoder.embeddings(input_ids=ids)[pairs.caption_of]
        bias = pairs.bias(hidden.dtype, pairs.caption_of)
        length = hidden.shape[1]
        count = torch.bincount(pairs.image_of, minlength=len(images))
        most = int(count.max())
        order, before = pairs.image_of.argsort(stable=True), count.cumsum(0) - count
        nth = torch.empty_like(order)
        nth[order] = torch.arange(len(order), device=order.device) - before[pairs.image_of[order]]
        place = pairs.image_of * most + nth
        for layer in self.model.text_encoder.encoder.layer:
            hidden = layer.attention(hidden, attention_mask=bias)[0]
            cross = layer.crossattention.self
            query = hidden.new_zeros(len(images) * most, length, cross.all_head_size)
            query[place] = cross.query(hidden)
            heads = [
                tensor.view(len(images), -1, cross.num_attention_heads, cross.attention_head_size)
                for tensor in (query, cross.key(patches), cross.value(patches))
            ]
            seen = scaled_dot_product_attention(*(tensor.transpose(1, 2) for tensor in heads)).transpose(1, 2)
            seen = seen.reshape(len(images) * most, length, -1)[place]
            hidden = layer.crossattention.output(seen, hidden)
            hidden = layer.feed_forward_chunk(hidden)
        return self.model.itm_head(hidden[:, 0])

    def crossed(self, picture: ndarray, ids: Sequence[int]) -> TokenMaps:
        """BLIP: the words of its text encoder look at patches."""
        model = self.model
        text = torch.tensor([list(ids)], device=self.device)
        if self.protocol == "retrieval":
            text[:, 0] = self.encoder_token()
        layers = model.text_encoder.encoder.layer

        def logit() -> Tensor:
            states = model.vision_model(**self.pixels([picture])).last_hidden_state.detach()
            last = model.text_encoder(
                input_ids=text,
                attention_mask=torch.ones_like(text),
                encoder_hidden_states=states.requires_grad_(),
                encoder_attention_mask=torch.ones(states.shape[:2], device=states.device, dtype=torch.long),
            ).last_hidden_state
            return model.itm_head(last[:, 0])[0, 1]

        (weighted,) = weighted_attention(logit, [inner_layer(layers).crossattention.self])
        return squared(weighted[:, 1:])


class Blip2(Family):
    """BLIP-2 (Li et al. 2023): a Q-Former whose queries look at the patches and, for `itm`, at the caption.

    Protocols: `itm`, the matching head's probability, its logits averaged over the queries; `itc`, the
    largest cosine of a query with the caption.
    """

    kind = "Blip2ForImageTextRetrieval"
    protocols = ("itm", "itc")
    text = "qformer_config"

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
        """The states of all patches; of `itc` the unit vectors of the queries alone."""
        states = self.model.vision_model(**self.pixels(pictures)).last_hidden_state
        if self.protocol == "itm":
            return [(row,) for row in states]
        queries = self.model.query_tokens.expand(len(states), -1, -1)
        output = self.model.qformer(query_embeds=queries, encoder_hidden_states=states).last_hidden_state
        projection = self.model.vision_projection
        return [(row,) for row in normalize(projection(output.to(projection.weight.dtype)), dim=-1)]

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        """Probabilities in [0, 1], or cosines in [-1, 1]."""
        states = torch.stack([queries_of for (queries_of,) in images])[pairs.image_of]
        if self.protocol == "itm":
            ids, mask = pairs.ids[pairs.caption_of], pairs.mask[pairs.caption_of]
            queries = self.model.query_tokens.expand(len(ids), -1, -1)
            text = self.model.qformer(
                query_embeds=self.model.embeddings(input_ids=ids, query_embeds=queries),
                query_length=queries.shape[1],
                attention_mask=torch.cat([mask.new_ones(queries.shape[:2]), mask], dim=1),
                encoder_hidden_states=states,
            ).last_hidden_state.to(self.model.itm_head.weight.dtype)
            return probability(self.model.itm_head(text[:, : queries.shape[1]]).mean(dim=1))
        text = self.model.qformer(
            query_embeds=self.model.embeddings(input_ids=pairs.ids), query_length=0, attention_mask=pairs.mask
        ).last_hidden_state
        projection = self.model.text_projection
        captions = normalize(projection(text[:, 0].to(projection.weight.dtype)), dim=-1)[pairs.caption_of]
        return (states.float() @ captions.float()[:, :, None])[:, :, 0].amax(dim=1)

    def crossed(self, picture: ndarray, ids: Sequence[int]) -> tuple[ndarray, TokenMaps]:
        """BLIP-2: queries look at patches and at words; of the whole the mean over queries."""
        layers = self.model.qformer.encoder.layer
        layer = inner_layer([block for block in layers if block.has_cross_attention])
        modules, head = [layer.crossattention.attention, layer.attention.attention], self.model.itm_head
        tokens = self.model.query_tokens
        before = tokens.requires_grad
        # Attention among queries and words comes before the picture, and has a gradient through the queries.
        tokens.requires_grad_(True)
        try:
            with eager_attention(modules[0].config):
                seen, read = weighted_attention(lambda: match_logit(self, head, picture, ids), modules)
        finally:
            tokens.requires_grad_(before)
        many = len(seen)
        maps = squared(seen[:, 1:])
        share = read[:many, many:].T
        share = share / np.maximum(share.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
        return maps.mean(axis=0), np.einsum("wq,qrc->wrc", share, maps)


class Vilt(Family):
    """ViLT (Kim et al. 2021): one transformer over words and patches.

    Only the embedding of the patches is shared by the captions of an image. The score is the logit of the
    retrieval head. A picture keeps its proportions, so the number of patches differs; where a model reads
    fewer than there are, those that transformers draws are drawn from seed 0.
    """

    kind = "ViltForImageAndTextRetrieval"
    protocols = ("itm",)

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
        """The embedded patches after a class token, and which of them are of the picture."""
        embeddings, most = self.model.vilt.embeddings, self.model.config.max_image_length
        states = []
        for picture in pictures:
            inputs = self.pixels([picture])
            with drawn_from(0):
                patches, mask, _ = embeddings.visual_embed(
                    inputs["pixel_values"], inputs["pixel_mask"], max_image_length=most
                )
            states.append((patches[0], mask[0]))
        return states

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        """Logits, of any size."""
        patches, mask = padded(images, pairs)
        logits: Tensor = self.model(
            input_ids=pairs.ids[pairs.caption_of],
            attention_mask=pairs.mask[pairs.caption_of],
            image_embeds=patches,
            pixel_mask=mask,
        ).logits
        return logits[:, 0]

    def stream(self, picture: ndarray, ids: Sequence[int]) -> Stream:
        """ViLT: words, then a class token of the picture and its patches."""
        embed, inputs = self.model.vilt.embeddings.visual_embed, self.pixels([picture])
        most = self.model.config.max_image_length
        with torch.no_grad(), drawn_from(0):
            pixels = inputs["pixel_values"], inputs["pixel_mask"]
            patches, mask, (places, size) = embed(*pixels, max_image_length=most)
            tokens = torch.tensor([list(ids)], device=self.device)
            output = self.model(
                input_ids=tokens,
                attention_mask=torch.ones_like(tokens),
                image_embeds=patches,
                pixel_mask=mask,
                output_attentions=True,
                output_hidden_states=True,
            )
            states = self.model.vilt.layernorm(output.hidden_states[-1])
        # Patches come in an order that is drawn, and of large pictures not all of them.
        where = tuple(places[0].cpu().numpy().T)

        def fill(rows: ndarray) -> ndarray:
            grids = np.zeros((len(rows), *size))
            grids[(slice(None), *where)] = rows
            return grids

        return stream_of(output.attentions, states, slice(0, len(ids)), slice(len(ids) + 1, None), fill)


class Flava(Family):
    """FLAVA (Singh et al. 2022): a tower per kind of item, and a third one over the states of both.

    Protocols: `itm`, the probability of the matching head over a caption and an image without masked parts;
    `contrastive`, the cosine of the class tokens of the two towers.
    """

    kind = "FlavaForPreTraining"
    protocols = ("itm", "contrastive")
    unused = r"(image_codebook|mim_head|mlm_head|mmm_image_head|mmm_text_head)\..*"

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
        """The states that the third tower reads; of `contrastive` a unit vector."""
        flava = self.model.flava
        output = flava.image_model(**self.pixels(pictures), output_hidden_states=True)
        if self.protocol == "itm":
            # The states before the tower's last norm.
            return [(row,) for row in flava.image_to_mm_projection(output.hidden_states[-1])]
        whole = normalize(flava.image_projection(output.last_hidden_state[:, 0]), dim=-1)
        return [(row,) for row in whole]

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        """Probabilities in [0, 1], or cosines in [-1, 1]."""
        states = [state for (state,) in images]
        if self.protocol == "itm":
            return probability(self.model.itm_head(self.together(states, pairs).last_hidden_state))
        flava = self.model.flava
        text = flava.text_model(input_ids=pairs.ids, attention_mask=pairs.mask)
        captions = normalize(flava.text_projection(text.last_hidden_state[:, 0]), dim=-1)
        return cosines(states, captions, pairs)

    def together(self, states: Sequence[Tensor], pairs: TokenizedPairs, **options: Any) -> Any:
        """The third tower over the states of images and the captions of `pairs`, with its `options`."""
        flava = self.model.flava
        text = flava.text_model(input_ids=pairs.ids, attention_mask=pairs.mask, output_hidden_states=True)
        words = flava.text_to_mm_projection(text.hidden_states[-1])[pairs.caption_of]
        patches = torch.stack(list(states))[pairs.image_of]
        mask, width = pairs.mask[pairs.caption_of], patches.shape[1] + flava.multimodal_model.use_cls_token
        return flava.multimodal_model(
            torch.cat([patches, words], dim=1),
            attention_mask=torch.cat([mask.new_ones(len(mask), width), mask], dim=1),
            **options,
        )

    def stream(self, picture: ndarray, ids: Sequence[int]) -> Stream:
        """FLAVA: a class token of the pair, one of the picture and its patches, then words."""
        with torch.no_grad():
            (states,) = self.images([picture])
            output = self.together(list(states), one_pair(self, ids), output_attentions=True)
        before = int(self.model.flava.multimodal_model.use_cls_token)
        first, behind = before + 1, before + len(states[0])
        words = slice(behind, behind + len(ids))
        return stream_of(output.attentions, output.last_hidden_state, words, slice(first, behind), squared)


class BridgeTower(Family):
    """BridgeTower (Xu et al. 2023): two towers whose upper layers each feed a layer that reads both.

    Neither tower looks at the other, so both run once, of an image and of a caption; the layers that read
    both run per pair. The score is the probability of the matching head.
    """

    kind = "BridgeTowerForImageAndTextRetrieval"
    #: It looks at the square in the middle of a picture.
    crops: ClassVar[bool] = True

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
        """The states that each cross-modal layer reads."""
        tower, visual = self.model.bridgetower, self.model.bridgetower.vision_model.visual
        # As the library's processor asks its image processor, whatever that one's own file says.
        inputs = self.pixels(pictures, do_normalize=True, do_center_crop=True)
        hidden = visual.forward_pre(inputs["pixel_values"])
        kind = tower.token_type_embeddings.weight[1]
        blocks, first = visual.transformer.resblocks, self._first
        levels: list[Tensor] = []
        for at, block in enumerate(blocks[: len(self._layers)]):
            hidden = block(hidden)
            if at + 1 >= first:
                levels.append(tower._apply_image_transform(visual.forward_post(hidden), len(levels)) + kind)
        return list(zip(*levels, strict=True))

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        """Probabilities in [0, 1]."""
        tower, text = self.model.bridgetower, self.model.bridgetower.text_model
        seen = [torch.stack(list(level))[pairs.image_of] for level in zip(*images, strict=True)]
        hidden, first = text.embeddings(input_ids=pairs.ids), self._first
        bias, kind = pairs.bias(hidden.dtype), tower.token_type_embeddings.weight[0]
        read: list[Tensor] = []
        for at, layer in enumerate(self._layers):
            hidden = layer(hidden, bias)
            if at + 1 >= first:
                read.append((tower._apply_text_transform(hidden, len(read)) + kind)[pairs.caption_of])
        bias = pairs.bias(hidden.dtype, pairs.caption_of)
        words, patches = tower.cross_modal_text_layernorm(read[0]), tower.cross_modal_image_layernorm(seen[0])
        for at in range(len(read)):
            if at:
                words = tower.cross_modal_text_link_tower[at - 1](read[at], words, bias)
                patches = tower.cross_modal_image_link_tower[at - 1](seen[at], patches, None)
            words, patches = (
                tower.cross_modal_text_layers[at](words, patches, attention_mask=bias)[0],
                tower.cross_modal_image_layers[at](patches, words, encoder_attention_mask=bias)[0],
            )
        return probability(self.model.itm_score(tower.get_cls_features(words, patches)))

    @property
    def _layers(self) -> Any:
        return self.model.bridgetower.text_model.encoder.layer

    @property
    def _first(self) -> int:
        """How many layers of each tower come before the first that reads both."""
        return len(self._layers) - int(self.model.bridgetower.config.num_hidden_layers) + 1

    def crossed(self, picture: ndarray, ids: Sequence[int]) -> TokenMaps:
        """BridgeTower: the words of the layers that read both look at patches."""
        layer = inner_layer(self.model.bridgetower.cross_modal_text_layers)
        head, modules = self.model.itm_score, [layer.crossattention.self]
        with eager_attention(modules[0].config):
            (weighted,) = weighted_attention(lambda: match_logit(self, head, picture, ids), modules)
        return squared(weighted[:, 1:])


#: The families by transformers' model type.
FAMILIES: dict[str, type[Family]] = {
    "blip": Blip,
    "blip-2": Blip2,
    "vilt": Vilt,
    "flava": Flava,
    "bridgetower": BridgeTower,
}


def load(argument: str, options: Options = DEFAULT) -> CrossEncoder:
    """The scorer in a local folder, or of that name on the hub (from the local cache where it is there).

    Raises `ModelError` as `hf:` does, and for models without a head for image-text matching;
    `UnknownNameError` for a protocol that the family lacks; `InputError` for a length above what it reads.
    """
    where = f"itm:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    library, config = loading.configuration_of(argument, where)
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise ModelError(
            "not a model of image-text matching",
            where=where,
            given=f"model type {config.model_type}",
            allowed="BLIP, BLIP-2, ViLT, FLAVA, BridgeTower",
            hint="a dual encoder of transformers is hf:...",
        )
    protocol = context.settings.get("protocol", family.protocols[0])
    if protocol not in family.protocols:
        raise UnknownNameError("protocol", protocol, family.protocols, where=where)
    kind = getattr(library, family.kind)
    opened = loading.pretrained(
        context, library, argument, kind=kind, unused=family.unused, sees=True, place=_placed
    )
    model, tokenizer = opened.model, opened.tokenizer
    loading.check_words(tokenizer, where)
    # The most tokens of a caption: as set, else of the protocol, else as many as the model reads.
    text = model.config if family.text == "text_config" else getattr(model.config, family.text, model.config)
    most = loading.length_of(text, tokenizer)
    length = loading.length_within(context.settings, most, family.lengths.get(protocol, most))
    matcher = family(model, opened.processor, tokenizer, context.device, opened.dtype, protocol, where)
    preprocessing = loading.processing_of(opened.processor)
    identity = context.identity(**opened.facts, preprocessing=preprocessing, length=length, protocol=protocol)
    tokens, read = HfTokens(tokenizer, length), partial(prepared, preparation=Untouched())
    provenance = context.provenance(library, model=family.kind)
    saliency = PairSaliency(identity, matcher, tokens)
    heats = saliency if saliency.methods else None
    scorer = CrossEncoder(identity, matcher, tokens, read, context.device, provenance=provenance, heats=heats)
    scorer.try_out(np.full((48, 64, 3), 128, dtype=np.uint8))
    return scorer


def _placed(model: Any, device: Any, dtype: torch.dtype) -> tuple[Any, torch.dtype]:
    """The model ready to answer, but for parts that transformers keeps in float32 (BLIP-2's Q-Former)."""
    names = getattr(model, "_keep_in_fp32_modules", None) or ()
    in_fp32 = {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters()
        if any(part in names for part in name.split("."))
    }
    model, computed = to_device(model, device, dtype)
    for name, parameter in model.named_parameters():
        if name in in_fp32:
            parameter.data = in_fp32[name].to(device)
    return model, computed
