"""Cross-encoders of the package transformers: `itm:NAME_OR_FOLDER` and `regions:NAME_OR_FOLDER`.

Each family follows its model's own `forward` without what a score does not need, and runs the image tower
once for all captions of an image. Ids of regions mean something in their own benchmark only, so scores of
regions are computed anew in every run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, TypeVar

import numpy as np
import PIL.Image
import torch
from numpy import ndarray
from torch import Tensor
from torch.nn.functional import normalize, scaled_dot_product_attention
from torch.nn.utils.rnn import pad_sequence

from counterfoil.errors import DataError, InputError, ModelError, UnknownNameError
from counterfoil.models import cross_encoder, hf_loading as loading, saliency
from counterfoil.models.base import DEFAULT, Options
from counterfoil.models.cross_encoder import CrossEncoder, Matcher, State, TokenizedPairs
from counterfoil.models.hf_loading import HfTokens
from counterfoil.models.images import Untouched, prepared
from counterfoil.models.region_files import BOXES, Regions, read_regions
from counterfoil.models.runtime import LoadContext, drawn_from, to_device
from counterfoil.models.settings import PairSettings, RegionSettings, settings_of

Kind = TypeVar("Kind", bound=Matcher)


@dataclass(frozen=True, eq=False)
class PixelFamily(Matcher):
    protocols: ClassVar[tuple[str, ...]] = ("itm",)
    text: ClassVar[str] = "text_config"
    #: The most tokens of a caption by protocol, where published numbers are of fewer than the model reads.
    lengths: ClassVar[dict[str, int]] = {}

    processor: Any
    tokenizer: Any
    protocol: str

    def pixels(self, pictures: Sequence[ndarray]) -> Any:
        """What the image processor makes of pictures, on the device; floats in the model's type."""
        whole = [PIL.Image.fromarray(picture) for picture in pictures]
        return self.processor(images=whole, return_tensors="pt").to(self.device, self.dtype)


def cosines(images: Sequence[Tensor], captions: Tensor, pairs: TokenizedPairs) -> Tensor:
    stacked = torch.stack(list(images))
    return (stacked[pairs.image_of].float() * captions[pairs.caption_of].float()).sum(dim=-1)


class Blip(PixelFamily):
    """BLIP (Li et al. 2022): a BERT whose layers look at the patches of the image.

    Protocols: `itm`, the matching head's probability at [CLS], as in BLIP's demo and in transformers;
    `retrieval`, its logit at [ENC] plus the cosine `itc`, captions cut to 35 tokens, as ARO and What'sUp
    measure; `itc`, the cosine of the two towers.
    """

    kind = "BlipForImageTextRetrieval"
    protocols = ("itm", "retrieval", "itc")
    lengths: ClassVar[dict[str, int]] = {"retrieval": 35}

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
        states = self.model.vision_model(**self.pixels(pictures)).last_hidden_state
        whole = normalize(self.model.vision_proj(states[:, 0]), dim=-1)
        return list(zip(states, whole, strict=True))

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        if self.protocol == "itm":
            return cross_encoder.probability(self._logits([states for states, _ in images], pairs, pairs.ids))
        text = self.model.text_encoder(input_ids=pairs.ids, attention_mask=pairs.mask).last_hidden_state
        captions = normalize(self.model.text_proj(text[:, 0]), dim=-1)
        cosine = cosines([whole for _, whole in images], captions, pairs)
        if self.protocol == "itc":
            return cosine
        ids = pairs.ids.clone()
        ids[:, 0] = self.encoder_token()
        return self._logits([states for states, _ in images], pairs, ids)[:, 1].float() + cosine

    def encoder_token(self) -> int:
        """The id of [ENC], in the place of [CLS] under `retrieval`; unnamed it follows [DEC] at the end."""
        token = self.tokenizer.get_vocab().get("[ENC]")
        size = int(self.model.config.text_config.vocab_size)
        if token is None and size != len(self.tokenizer) + 2:
            problem = "the vocabulary has no encoder token [ENC], which the retrieval protocol needs"
            given = f"{size} rows for a tokenizer of {len(self.tokenizer)}"
            raise ModelError(problem, where=self.where, given=given, hint="use --set protocol=itm")
        return size - 1 if token is None else int(token)

    def _logits(self, images: Sequence[Tensor], pairs: TokenizedPairs, ids: Tensor) -> Tensor:
        """(pairs, 2) of the matching head.

        Keys and values of patches are computed once per image; the queries of its captions stand in a row.
        """
        patches = torch.stack(list(images))
        hidden = self.model.text_encoder.embeddings(input_ids=ids)[pairs.caption_of]
        bias = cross_encoder.attention_bias(pairs.mask[pairs.caption_of], hidden.dtype)
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

    def attention_maps(self, picture: ndarray, ids: Sequence[int]) -> saliency.TokenMaps:
        model = self.model
        text = torch.tensor([list(ids)], device=self.device)
        if self.protocol == "retrieval":
            text[:, 0] = self.encoder_token()
        layers = model.text_encoder.encoder.layer

        def logit() -> Tensor:
            states = model.vision_model(**self.pixels([picture])).last_hidden_state.detach()
            there = torch.ones(states.shape[:2], device=states.device, dtype=torch.long)
            seen = {"encoder_hidden_states": states.requires_grad_(), "encoder_attention_mask": there}
            output = model.text_encoder(input_ids=text, attention_mask=torch.ones_like(text), **seen)
            return model.itm_head(output.last_hidden_state[:, 0])[0, 1]

        weighted = saliency.weighted_attention(logit, saliency.inner_layer(layers).crossattention.self)
        return saliency.squared(weighted[:, 1:])


class Blip2(PixelFamily):
    """BLIP-2 (Li et al. 2023): a Q-Former over queries, patches and captions.

    Protocols: `itm`, the matching head's probability, its logits averaged over the queries; `itc`, the
    largest cosine of a query with the caption.
    """

    kind = "Blip2ForImageTextRetrieval"
    protocols = ("itm", "itc")
    text = "qformer_config"

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
        states = self.model.vision_model(**self.pixels(pictures)).last_hidden_state
        if self.protocol == "itm":
            return [(row,) for row in states]
        queries = self.model.query_tokens.expand(len(states), -1, -1)
        output = self.model.qformer(query_embeds=queries, encoder_hidden_states=states).last_hidden_state
        projection = self.model.vision_projection
        return [(row,) for row in normalize(projection(output.to(projection.weight.dtype)), dim=-1)]

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
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
            return cross_encoder.probability(self.model.itm_head(text[:, : queries.shape[1]]).mean(dim=1))
        text = self.model.qformer(
            query_embeds=self.model.embeddings(input_ids=pairs.ids), query_length=0, attention_mask=pairs.mask
        ).last_hidden_state
        projection = self.model.text_projection
        captions = normalize(projection(text[:, 0].to(projection.weight.dtype)), dim=-1)[pairs.caption_of]
        return (states.float() @ captions.float()[:, :, None])[:, :, 0].amax(dim=1)


class Vilt(PixelFamily):
    """ViLT (Kim et al. 2021): one transformer over words and patches; the score is a logit.

    Of more patches than a model reads transformers draws some, here from seed 0.
    """

    kind = "ViltForImageAndTextRetrieval"

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
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
        patches, mask = cross_encoder.padded(images, pairs)
        inputs = {"input_ids": pairs.ids[pairs.caption_of], "attention_mask": pairs.mask[pairs.caption_of]}
        logits: Tensor = self.model(image_embeds=patches, pixel_mask=mask, **inputs).logits
        return logits[:, 0]

    def stream(self, picture: ndarray, ids: Sequence[int]) -> saliency.Maps:
        embed, inputs = self.model.vilt.embeddings.visual_embed, self.pixels([picture])
        most = self.model.config.max_image_length
        with torch.no_grad(), drawn_from(0):
            pixels = inputs["pixel_values"], inputs["pixel_mask"]
            patches, mask, (positions, size) = embed(*pixels, max_image_length=most)
            tokens = torch.tensor([list(ids)], device=self.device)
            seen = {"image_embeds": patches, "pixel_mask": mask, "attention_mask": torch.ones_like(tokens)}
            output = self.model(input_ids=tokens, output_attentions=True, **seen)
        # Patches come in an order that is drawn, and of large pictures not all of them.
        where = tuple(positions[0].cpu().numpy().T)

        def fill(rows: ndarray) -> ndarray:
            grids = np.zeros((len(rows), *size))
            grids[(slice(None), *where)] = rows
            return grids

        words, behind = slice(0, len(ids)), slice(len(ids) + 1, None)
        return saliency.rolled_out(output.attentions, words, behind, fill)


class Flava(PixelFamily):
    """FLAVA (Singh et al. 2022): a tower per kind of item, and a third one over the states of both.

    Protocols: `itm`, the matching head's probability of an image without masked parts; `contrastive`, the
    cosine of the two class tokens.
    """

    kind = "FlavaForPreTraining"
    protocols = ("itm", "contrastive")
    unused = r"(image_codebook|mim_head|mlm_head|mmm_image_head|mmm_text_head)\..*"

    def images(self, pictures: Sequence[ndarray]) -> list[State]:
        flava = self.model.flava
        output = flava.image_model(**self.pixels(pictures), output_hidden_states=True)
        if self.protocol == "itm":
            return [(row,) for row in flava.image_to_mm_projection(output.hidden_states[-1])]
        whole = normalize(flava.image_projection(output.last_hidden_state[:, 0]), dim=-1)
        return [(row,) for row in whole]

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        states = [state for (state,) in images]
        if self.protocol == "itm":
            output = self.together(states, pairs).last_hidden_state
            return cross_encoder.probability(self.model.itm_head(output))
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

    def stream(self, picture: ndarray, ids: Sequence[int]) -> saliency.Maps:
        with torch.no_grad():
            (states,) = self.images([picture])
            output = self.together(list(states), cross_encoder.one_pair(self, ids), output_attentions=True)
        before = int(self.model.flava.multimodal_model.use_cls_token)
        first, behind = before + 1, before + len(states[0])
        words, patches = slice(behind, behind + len(ids)), slice(first, behind)
        return saliency.rolled_out(output.attentions, words, patches, saliency.squared)


@dataclass(frozen=True, eq=False)
class RegionFamily(Matcher):
    width: ClassVar[str]
    placed: ClassVar[bool]
    #: The class of the matching head that means "the caption is of the image", unless it is set.
    matching: ClassVar[int]

    match: int

    def tensors(self, regions: Sequence[Regions]) -> tuple[Tensor, Tensor, Tensor]:
        for image in regions:
            image.within(int(getattr(self.model.config, self.width)), self.where)
            if self.placed and image.boxes is None:
                problem = "the regions have no boxes, which the model reads"
                raise DataError(problem, where=self.where, hint=BOXES)
        features = [torch.from_numpy(image.features) for image in regions]
        boxes = [
            torch.zeros(len(image.features), 4) if image.boxes is None else torch.from_numpy(image.boxes)
            for image in regions
        ]
        mask = [torch.ones(len(rows), dtype=torch.long) for rows in features]
        parts = [pad_sequence(part, batch_first=True).to(self.device) for part in (features, boxes, mask)]
        return parts[0].to(self.dtype), parts[1].to(self.dtype), parts[2]


class Lxmert(RegionFamily):
    """LXMERT (Tan and Bansal 2019): the score is the probability of class 1 of `cross_relationship_score`."""

    kind = "LxmertForPreTraining"
    width = "visual_feat_dim"
    unused = r"(cls\.predictions|obj_predict_head|answer_head)\..*"
    placed = True
    matching = 1

    def images(self, regions: Sequence[Regions]) -> list[State]:
        features, boxes, mask = self.tensors(regions)
        encoder, bias = self.model.lxmert.encoder, cross_encoder.attention_bias(mask, self.dtype)
        states = encoder.visn_fc(features, boxes)
        for layer in encoder.r_layers:
            states = layer(states, bias)[0]
        return list(zip(states, mask, strict=True))

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        lxmert, bias = self.model.lxmert, cross_encoder.attention_bias(pairs.mask, self.dtype)
        words = lxmert.embeddings(pairs.ids, torch.zeros_like(pairs.ids))
        for layer in lxmert.encoder.layer:
            words = layer(words, bias)[0]
        words, bias = words[pairs.caption_of], bias[pairs.caption_of]
        states, mask = cross_encoder.padded(images, pairs)
        seen = cross_encoder.attention_bias(mask, self.dtype)
        for layer in lxmert.encoder.x_layers:
            words, states = layer(words, bias, states, seen)[:2]
        logits = self.model.cls.seq_relationship(lxmert.pooler(words))
        return cross_encoder.probability(logits, self.match)

    def attention_maps(self, regions: Any, ids: Sequence[int]) -> saliency.TokenMaps:
        attention = saliency.inner_layer(self.model.lxmert.encoder.x_layers).visual_attention.att
        fill = saliency.painted(regions, self.where)
        head = self.model.cls.seq_relationship
        with attention.register_forward_pre_hook(
            lambda _, args, kwargs: (args, {**kwargs, "output_attentions": True}), with_kwargs=True
        ):
            # The same weights let regions look at words, in the second call.
            logit = partial(cross_encoder.match_logit, self, head, regions, ids)
            return fill(saliency.weighted_attention(logit, attention))


class VisualBert(RegionFamily):
    """VisualBERT (Li et al. 2019): one transformer over words and regions without places.

    The score is the probability of class 0 of `seq_relationship_logits`, by the documentation of
    transformers; `match=1` takes the other one, for a checkpoint trained with the labels turned around.
    """

    kind = "VisualBertForPreTraining"
    width = "visual_embedding_dim"
    unused = r"cls\.predictions\..*"
    placed = False
    matching = 0

    def images(self, regions: Sequence[Regions]) -> list[State]:
        features, _, mask = self.tensors(regions)
        return list(zip(features, mask, strict=True))

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        pooled = self.together(images, pairs).pooler_output
        return cross_encoder.probability(self.model.cls.seq_relationship(pooled), self.match)

    def together(self, images: Sequence[State], pairs: TokenizedPairs, **options: Any) -> Any:
        features, mask = cross_encoder.padded(images, pairs)
        words = {"input_ids": pairs.ids[pairs.caption_of], "attention_mask": pairs.mask[pairs.caption_of]}
        seen = {"visual_attention_mask": mask, "visual_token_type_ids": torch.ones_like(mask)}
        return self.model.visual_bert(visual_embeds=features, **words, **seen, **options)

    def stream(self, regions: Any, ids: Sequence[int]) -> saliency.Maps:
        with torch.no_grad():
            pair = cross_encoder.one_pair(self, ids)
            output = self.together(self.images([regions]), pair, output_attentions=True)
        words, positions = slice(0, len(ids)), slice(len(ids), None)
        fill = saliency.painted(regions, self.where)
        return saliency.rolled_out(output.attentions, words, positions, fill)


FAMILIES: dict[str, type[PixelFamily]] = {"blip": Blip, "blip-2": Blip2, "vilt": Vilt, "flava": Flava}
REGION_FAMILIES: dict[str, type[RegionFamily]] = {"lxmert": Lxmert, "visual_bert": VisualBert}


def load(argument: str, options: Options = DEFAULT) -> CrossEncoder:
    where = f"itm:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    allowed, hint = "BLIP, BLIP-2, ViLT, FLAVA", "a dual encoder of transformers is hf:..."
    library, family = _family(FAMILIES, argument, where, "", allowed=allowed, hint=hint)
    settings = settings_of(PairSettings, options.settings, where=where)
    protocol = settings.protocol or family.protocols[0]
    if protocol not in family.protocols:
        raise UnknownNameError("protocol", protocol, family.protocols, where=where)
    opened = _opened(context, library, argument, family, sees=True, place=_placed)
    # The most tokens of a caption: as set, else of the protocol, else as many as the model reads.
    config = opened.model.config
    text = config if family.text == "text_config" else getattr(config, family.text, config)
    most = loading.length_of(text, opened.tokenizer)
    usual = min(family.lengths.get(protocol, most), most)
    length = usual if settings.length is None else loading.length_within(settings.length, most, where=where)
    processor, tokens = opened.processor, HfTokens(opened.tokenizer, length)
    place = opened.model, context.device, opened.dtype, where
    matcher = family(*place, processor, opened.tokenizer, protocol)
    preprocessing = loading.processing_of(processor)
    identity = context.identity(**opened.facts, preprocessing=preprocessing, length=length, protocol=protocol)
    heats: Any = saliency.PairSaliency(identity, matcher, tokens)
    read = partial(prepared, preparation=Untouched())
    provenance = context.provenance(library, model=family.kind)
    heats = heats if heats.methods else None
    model = CrossEncoder(identity, matcher, tokens, read, provenance=provenance, heats=heats)
    model.try_out(np.full((48, 64, 3), 128, dtype=np.uint8))
    return model


def load_regions(argument: str, options: Options = DEFAULT) -> CrossEncoder:
    where = f"regions:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    settings = settings_of(RegionSettings, options.settings, where=where)
    if not settings.features:
        hint = "give them with --set features=PATH"
        raise InputError("the regions of the images are missing", where=where, hint=hint)
    allowed, hint = "LXMERT, VisualBERT", "models that look at pixels are itm:..."
    library, family = _family(REGION_FAMILIES, argument, where, " on regions", allowed=allowed, hint=hint)
    match = family.matching if settings.match is None else settings.match
    opened = _opened(context, library, argument, family, tokenizer=settings.tokenizer)
    most = loading.length_of(opened.model.config, opened.tokenizer)
    length = loading.length_within(settings.length, most, where=where)
    regions, tokens = read_regions(settings.features), HfTokens(opened.tokenizer, length)
    matcher = family(opened.model, context.device, opened.dtype, where, match)
    identity = context.identity(**opened.facts, preprocessing=regions.digest, length=length, match=match)
    provenance = context.provenance(library, model=family.kind, regions=str(regions.where))
    heats = saliency.PairSaliency(identity, matcher, tokens, regions.of)
    model = CrossEncoder(identity, matcher, tokens, regions.batches, ("captions",), provenance, heats)
    model.try_out(regions.first())
    return model


def _family(
    families: Mapping[str, type[Kind]], argument: str, where: str, what: str, *, allowed: str, hint: str
) -> tuple[Any, type[Kind]]:
    """The package transformers and the family of a model; raises `ModelError` for one of no family."""
    library, config = loading.configuration_of(argument, where)
    family = families.get(config.model_type)
    if family is None:
        problem, given = f"not a model of image-text matching{what}", f"model type {config.model_type}"
        raise ModelError(problem, where=where, given=given, allowed=allowed, hint=hint)
    return library, family


def _opened(
    context: LoadContext, library: Any, argument: str, family: type[Matcher], **options: Any
) -> loading.Pretrained:
    kind = getattr(library, family.kind)
    opened = loading.pretrained(context, library, argument, kind=kind, unused=family.unused, **options)
    loading.check_words(opened.tokenizer, context.where)
    return opened


def _placed(model: Any, device: Any, dtype: torch.dtype) -> tuple[Any, torch.dtype]:
    """The model ready to answer, but for parts that transformers keeps in float32 (BLIP-2's Q-Former)."""
    names = {*(getattr(model, "_keep_in_fp32_modules", None) or ())}
    parameters = [row for row in model.named_parameters() if names.intersection(row[0].split("."))]
    in_fp32 = {name: parameter.detach().clone() for name, parameter in parameters}
    model, computed = to_device(model, device, dtype)
    for name, parameter in model.named_parameters():
        if name in in_fp32:
            parameter.data = in_fp32[name].to(device)
    return model, computed
