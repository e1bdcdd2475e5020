"""Likelihood of captions, log P(caption | image), by a model that writes them (`likelihood:NAME_OR_FOLDER`).

With `unconditional` alpha log P(caption) is taken off, by a language model (`lm`), a grey picture (`blank`)
or pictures of noise (`noise`). Source: Lin et al. 2024, "Revisiting the role of language priors in
vision-language models" (VisualGPTScore).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import PIL.Image
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, ModelError
from counterfoil.models.base import DEFAULT, Options
from counterfoil.models.generative import captioners
from counterfoil.models.generative.image_text import ImageTextDecoder, how_computed, opened
from counterfoil.models.generative.prefixes import Decoder, GenerativeModel, TextRow, log_probabilities
from counterfoil.models.generative.templates import PROBES, PaliGemmaTemplate
from counterfoil.models.runtime import LoadContext
from counterfoil.models.settings import LikelihoodSettings, settings_of

#: What a model with a chat template is asked; PaliGemma has a prompt of its own, and captioners need none.
INSTRUCTION, PALIGEMMA = "Describe this image in one sentence.", "caption en"
#: The unconditional term of captions: log P(caption) of each, per token where the score is.
Prior = Callable[[Sequence[str]], Sequence[float]]
_SIDE = 224


def load(argument: str, options: Options = DEFAULT) -> GenerativeModel:
    where = f"likelihood:{argument}"
    context = LoadContext.of(where, options, "settings")
    chosen = settings_of(LikelihoodSettings, options.settings, where=where)
    alpha = 1.0 if chosen.alpha is None else chosen.alpha
    decoder: captioners.Captioner | ImageTextDecoder
    facts, computed = dict[str, Any](), dict[str, str]()
    if argument.startswith("open-clip:"):
        allowed = "a captioner of transformers, such as BLIP, GIT or PaliGemma"
        raise ModelError("CoCa's captions are not scored", where=where, allowed=allowed)
    model = opened(argument, context)
    if model.model.config.model_type in captioners.CAPTIONERS:
        decoder = captioners.captioner_of(model, chosen.instruction or "", where)
    else:
        decoder = model.decoder(where)
    words = Words.of(decoder, chosen, where)
    if isinstance(decoder, ImageTextDecoder):
        decoder = decoder.checked([words.row(probe) for probe in PROBES[1:3]], words.prompt, where)
        facts, computed = {"template": decoder.template.digest}, {"computed": how_computed(decoder)}
    prior, prior_facts = _prior(chosen, decoder, words, options)
    facts |= {"length": chosen.length, "end": chosen.end, "prompt": list(words.prompt)}
    # Word after word; caches know it by this name.
    facts |= {"prediction": "causal", "unconditional": chosen.unconditional}
    facts |= {} if chosen.unconditional == "none" else {"alpha": alpha}
    facts = {**model.identity.options, **facts, **prior_facts}

    def value(part: ndarray) -> float:
        return float(part[:, 0].sum() if chosen.length == "sum" else part[:, 0].mean())

    def values(texts: Sequence[str], parts: Sequence[ndarray]) -> list[float]:
        return [value(part) - alpha * without for part, without in zip(parts, prior(texts), strict=True)]

    identity, provenance = replace(model.identity, options=facts), {**model.versions, **computed}
    return GenerativeModel(identity, decoder, words.row, values, words.too_long, provenance)


@dataclass(frozen=True, eq=False)
class Words:
    """Captions to rows of ids: a prompt, the caption's own, the end token where it counts."""

    where: str
    prompt: tuple[int, ...]
    ids: Callable[[str], tuple[int, ...]]
    end: tuple[int, ...]
    room: int

    @classmethod
    def of(
        cls, decoder: "captioners.Captioner | ImageTextDecoder", chosen: LikelihoodSettings, where: str
    ) -> "Words":
        if isinstance(decoder, captioners.Captioner):
            prompt, ids, end = decoder.prompt, decoder.words, decoder.end
            room = max(1, decoder.positions - len(prompt) - 1)
        else:
            template = decoder.template
            usual = PALIGEMMA if isinstance(template, PaliGemmaTemplate) else INSTRUCTION
            prompt = template.text(usual if chosen.instruction is None else chosen.instruction)
            end, room = template.end() if chosen.end == "in" else 0, decoder.room(len(prompt) + 1)

            def ids(text: str) -> tuple[int, ...]:
                return template.words(template.lead + text)

        return cls(where, prompt, ids, (end,) if chosen.end == "in" else (), room)

    def row(self, text: str) -> TextRow:
        """The row of a caption, cut to what the model reads; raises `DataError` where it has no tokens."""
        targets = (*self.ids(text)[: self.room], *self.end)
        if not targets:
            hint = "--set end=in counts the end token"
            raise DataError("an empty caption has no likelihood", where=self.where, hint=hint)
        return TextRow((*self.prompt, *targets[:-1]), np.array(targets, dtype=np.int64)[:, None])

    def too_long(self, text: str) -> bool:
        return len(self.ids(text)) > self.room


def _remembered(compute: Prior) -> Prior:
    cached: dict[str, float] = {}

    def prior(texts: Sequence[str]) -> list[float]:
        new = [text for text in dict.fromkeys(texts) if text not in cached]
        if new:
            cached.update(zip(new, compute(new), strict=True))
        return [cached[text] for text in texts]

    return prior


def _prior(
    chosen: LikelihoodSettings, decoder: Decoder, words: Words, options: Options
) -> tuple[Prior, dict[str, Any]]:
    """The unconditional term, and what identities must know of it."""
    if chosen.unconditional == "none":
        return lambda texts: [0.0] * len(texts), {}
    if chosen.unconditional == "lm":
        from counterfoil.models.text_models import load_lm

        lm_settings = {"score": "log-likelihood" if chosen.length == "sum" else "mean", "end": chosen.end}
        lm_options = Options(device=options.device, precision=options.precision, settings=lm_settings)
        model = load_lm(chosen.lm, lm_options)

        def of_language_model(texts: Sequence[str]) -> list[float]:
            (values,) = model.score_pairs([[(Image(""), Caption(text, text)) for text in texts]])
            return values.tolist()

        return _remembered(of_language_model), {"lm": replace(model.identity, name="").to_json()}
    shape, facts = (_SIDE, _SIDE, 3), {}
    arrays = [np.full(shape, 128.0)]
    if chosen.unconditional == "noise":
        rng, noises = np.random.default_rng(options.seed), chosen.noises or 3
        arrays = [np.clip(rng.normal(128, 64, shape), 0, 255) for _ in range(noises)]
        facts = {"noises": noises, "seed": options.seed}
    pictures = [PIL.Image.fromarray(array.astype(np.uint8)) for array in arrays]
    seen = [decoder.see(np.asarray(picture)) for picture in pictures]

    def compute(texts: Sequence[str]) -> list[float]:
        rows = [words.row(text) for text in texts]
        pictures = [picture for picture in seen for _ in rows]
        values = log_probabilities(decoder, pictures, rows * len(seen), [True] * len(pictures))
        sums = np.array([part[:, 0].sum() for part in values]).reshape(len(seen), len(texts))
        # The mean of probabilities over pictures, not of their logarithms.
        logs = np.logaddexp.reduce(sums, axis=0) - np.log(len(seen))
        lengths = [1 if chosen.length == "sum" else len(row.wanted) for row in rows]
        return [float(log) / length for log, length in zip(logs, lengths, strict=True)]

    return _remembered(compute), facts
