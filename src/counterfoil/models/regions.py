"""Cross-encoders that read region features from files: `regions:NAME_OR_FOLDER` with the setting `features`.

LXMERT and VisualBERT of transformers. The detector that made their regions is not part of them, so its output
is read (`counterfoil.models.region_files`) and images themselves are not needed. Ids of images mean
something in their own benchmark only, so scores are computed anew in every run.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.models import hf_loading as loading
from counterfoil.models.base import DEFAULT, Options
from counterfoil.models.cross_encoder import (
    CrossEncoder,
    Matcher,
    State,
    TokenizedPairs,
    attention_bias,
    padded,
    probability,
)
from counterfoil.models.hf_text import HfTokens
from counterfoil.models.region_files import BOXES, Regions, read_regions
from counterfoil.models.runtime import LoadContext
from counterfoil.models.saliency import (
    PairSaliency,
    Stream,
    TokenMaps,
    inner_layer,
    match_logit,
    one_pair,
    painted,
    stream_of,
    weighted_attention,
)


@dataclass(frozen=True, eq=False)
class RegionFamily(Matcher):
    """A model of regions on its device."""

    kind: ClassVar[str]
    #: The name of the width of features in the configuration.
    width: ClassVar[str]
    unused: ClassVar[str]
    #: Whether it reads boxes.
    placed: ClassVar[bool]
    #: The class of the matching head that means "the caption is of the image", unless it is set.
    matching: ClassVar[int]

    model: Any
    device: Any
    dtype: torch.dtype
    match: int
    where: str

    def tensors(self, regions: Sequence[Regions]) -> tuple[Tensor, Tensor, Tensor]:
        """Features, boxes and mask of images, padded to the most regions.

        Raises `ModelError` for features of another width, `DataError` for boxes that are missing.
        """
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
        mask = [torch.ones(len(image.features), dtype=torch.long) for image in regions]
        parts = [pad_sequence(part, batch_first=True).to(self.device) for part in (features, boxes, mask)]
        return parts[0].to(self.dtype), parts[1].to(self.dtype), parts[2]


class Lxmert(RegionFamily):
    """LXMERT (Tan and Bansal 2019): layers over words, over regions with boxes, and over both.

    The first two run once, of a caption and of an image. The score is the probability of
    `cross_relationship_score` that the caption is of the image, its class 1.
    """

    kind = "LxmertForPreTraining"
    width = "visual_feat_dim"
    unused = r"(cls\.predictions|obj_predict_head|answer_head)\..*"
    placed = True
    matching = 1

    def images(self, regions: Sequence[Regions]) -> list[State]:
        """The states of the regions after the layers that read nothing else, and their mask."""
        features, boxes, mask = self.tensors(regions)
        encoder, bias = self.model.lxmert.encoder, attention_bias(mask, self.dtype)
        states = encoder.visn_fc(features, boxes)
        for layer in encoder.r_layers:
            states = layer(states, bias)[0]
        return list(zip(states, mask, strict=True))

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        """Probabilities in [0, 1]."""
        lxmert, bias = self.model.lxmert, pairs.bias(self.dtype)
        words = lxmert.embeddings(pairs.ids, torch.zeros_like(pairs.ids))
        for layer in lxmert.encoder.layer:
            words = layer(words, bias)[0]
        words, bias = words[pairs.caption_of], bias[pairs.caption_of]
        states, mask = padded(images, pairs)
        seen = attention_bias(mask, self.dtype)
        for layer in lxmert.encoder.x_layers:
            words, states = layer(words, bias, states, seen)[:2]
        logits = self.model.cls.seq_relationship(lxmert.pooler(words))
        return probability(logits, self.match)

    def crossed(self, regions: Any, ids: Sequence[int]) -> TokenMaps:
        """LXMERT: words look at regions."""
        attention = inner_layer(self.model.lxmert.encoder.x_layers).visual_attention.att
        fill = painted(regions, self.where)
        head = self.model.cls.seq_relationship
        with attention.register_forward_pre_hook(
            lambda _, args, kwargs: (args, {**kwargs, "output_attentions": True}), with_kwargs=True
        ):
            # The same weights let regions look at words, in the second call.
            (weighted,) = weighted_attention(lambda: match_logit(self, head, regions, ids), [attention])
        return fill(weighted)


class VisualBert(RegionFamily):
    """VisualBERT (Li et al. 2019): one transformer over words and regions without places.

    The score is the probability of `seq_relationship_logits` that the caption is of the image. That is class
    0 by the documentation of transformers; the setting `match=1` takes the other one, for a checkpoint
    trained with the labels turned around.
    """

    kind = "VisualBertForPreTraining"
    width = "visual_embedding_dim"
    unused = r"cls\.predictions\..*"
    placed = False
    matching = 0

    def images(self, regions: Sequence[Regions]) -> list[State]:
        """The features and their mask: nothing is computed before the caption is known."""
        features, _, mask = self.tensors(regions)
        return list(zip(features, mask, strict=True))

    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        """Probabilities in [0, 1]."""
        pooled = self.together(images, pairs).pooler_output
        return probability(self.model.cls.seq_relationship(pooled), self.match)

    def together(self, images: Sequence[State], pairs: TokenizedPairs, **options: Any) -> Any:
        """The transformer over the captions and regions of `pairs`, with its `options`."""
        features, mask = padded(images, pairs)
        return self.model.visual_bert(
            input_ids=pairs.ids[pairs.caption_of],
            attention_mask=pairs.mask[pairs.caption_of],
            visual_embeds=features,
            visual_attention_mask=mask,
            visual_token_type_ids=torch.ones_like(mask),
            **options,
        )

    def stream(self, regions: Any, ids: Sequence[int]) -> Stream:
        """VisualBERT: words, then regions."""
        with torch.no_grad():
            output = self.together(self.images([regions]), one_pair(self, ids), output_attentions=True)
        words, places = slice(0, len(ids)), slice(len(ids), None)
        fill = painted(regions, self.where)
        return stream_of(output.attentions, output.last_hidden_state, words, places, fill)


#: The families by transformers' model type.
FAMILIES: dict[str, type[RegionFamily]] = {"lxmert": Lxmert, "visual_bert": VisualBert}


def load(argument: str, options: Options = DEFAULT) -> CrossEncoder:
    """The scorer in a local folder, or of that name on the hub (from the local cache where it is there).

    Settings: `features`, the files of regions, which is needed; `tokenizer`, a folder or name, where the
    model brings none (VisualBERT's released ones do not); `length`, to cut captions to fewer tokens; `match`,
    the class of the matching head. Raises `ModelError` as `hf:` does, for other models, and for regions of
    another width; `DataError` for files of regions that cannot be read or lack boxes that the model needs.
    """
    where = f"regions:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    settings, device = context.settings, context.device
    if not settings.get("features"):
        hint = "give them with --set features=PATH"
        raise InputError("the regions of the images are missing", where=where, hint=hint)
    library, config = loading.configuration_of(argument, where)
    family = FAMILIES.get(config.model_type)
    if family is None:
        problem = "not a model of image-text matching on regions"
        given = f"model type {config.model_type}"
        hint = "models that look at pixels are itm:..."
        raise ModelError(problem, where=where, given=given, allowed="LXMERT, VisualBERT", hint=hint)
    match = int(settings.one_of("match", ("0", "1"), default=str(family.matching)))
    kind, named = getattr(library, family.kind), settings.get("tokenizer")
    opened = loading.pretrained(context, library, argument, kind=kind, unused=family.unused, tokenizer=named)
    model, tokenizer = opened.model, opened.tokenizer
    loading.check_words(tokenizer, where)
    length = loading.length_within(settings, loading.length_of(model.config, tokenizer))
    regions = read_regions(settings.get("features"))
    matcher, tokens = family(model, device, opened.dtype, match, where), HfTokens(tokenizer, length)
    identity = context.identity(**opened.facts, preprocessing=regions.digest, length=length, match=match)
    provenance = context.provenance(library, model=family.kind, regions=str(regions.where))
    heats = PairSaliency(identity, matcher, tokens, regions.of)
    scorer = CrossEncoder(
        identity, matcher, tokens, regions.batches, device, ("captions",), provenance, heats
    )
    # The first image shows whether regions and model fit.
    scorer.try_out(regions.first())
    return scorer
