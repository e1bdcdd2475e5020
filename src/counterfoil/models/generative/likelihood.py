"""Likelihood of captions, log P(caption | image), by a model that writes them (`likelihood:NAME_OR_FOLDER`).

A captioner favours captions that are likely without any image. `unconditional` takes that off: the score is
log P(caption | image) - alpha log P(caption), where the second term comes from a language model (`lm`), from
a grey picture (`blank`), or from pictures of noise (`noise`). alpha is 1 unless given.

Source: Lin et al. 2024, "Revisiting the role of language priors in vision-language models" (VisualGPTScore).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import PIL.Image
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, InputError
from counterfoil.models.base import DEFAULT, Options, ScorerSettings
from counterfoil.models.generative import captioners
from counterfoil.models.generative.image_text import ImageTextDecoder, opened, sharing
from counterfoil.models.generative.prefixes import Decoder, GenerativeScorer, TextRow, log_probabilities
from counterfoil.models.generative.templates import PROBES, PaliGemmaTemplate
from counterfoil.models.images import Preparation, Untouched
from counterfoil.models.runtime import LoadContext

#: What a model with a chat template is asked; PaliGemma has a prompt of its own, and captioners need none.
INSTRUCTION, PALIGEMMA = "Describe this image in one sentence.", "caption en"
#: The unconditional term of captions: log P(caption) of each, per token where the score is.
Prior = Callable[[Sequence[str]], Sequence[float]]
#: The side of grey and of noisy pictures.
_SIDE = 224


def load(argument: str, options: Options = DEFAULT) -> GenerativeScorer:
    """The scorer by the model in a local folder or of that name on the hub; `open-clip:...` is a CoCa.

    Scores are natural logarithms: of the whole caption (`length=sum`), or the mean per token (`length=mean`);
    with the end token (`end=in`) or without (`end=out`). With an unconditional term they may be above 0.
    Raises `InputError` for settings that do not fit each other, `ModelError` for models that write no
    captions.
    """
    where = f"likelihood:{argument}"
    context = LoadContext.of(where, options, "settings")
    chosen = Choices.of(context.settings)
    decoder: captioners.Captioner | ImageTextDecoder
    facts: dict[str, Any] = {}
    computed: dict[str, str] = {}
    if argument.startswith("open-clip:"):
        name = argument.removeprefix("open-clip:")
        decoder, identity, versions = captioners.coca(name, context, chosen.instruction or "")
    else:
        model = opened(argument, context)
        identity, versions = model.identity, dict(model.versions)
        if model.model.config.model_type in captioners.CAPTIONERS:
            decoder = captioners.captioner_of(model, chosen.instruction or "", where)
        else:
            decoder = model.decoder(where)
    words = Words.of(decoder, chosen)
    if isinstance(decoder, ImageTextDecoder):
        decoder = decoder.checked([words.row(probe) for probe in PROBES[1:3]], words.prompt, where)
        facts, computed = {"template": decoder.template.digest}, {"computed": sharing(decoder)}
    preparation: Preparation = getattr(decoder, "preparation", Untouched())
    prior, prior_facts = _prior(chosen, decoder, words, preparation, options)
    facts = {**identity.options, **facts, **chosen.described(words), **prior_facts}
    return GenerativeScorer(
        identity=replace(identity, options=facts),
        decoder=decoder,
        row=words.row,
        values=lambda texts, parts: [
            chosen.value(part) - chosen.alpha * without
            for part, without in zip(parts, prior(texts), strict=True)
        ],
        too_long=words.too_long,
        provenance={**versions, **computed},
        preparation=preparation,
    )


@dataclass(frozen=True)
class Choices:
    """The settings of a likelihood, each in its allowed range."""

    where: str
    length: str
    end: str
    unconditional: str
    alpha: float
    lm: str
    noises: int
    #: None takes the model's usual one.
    instruction: str | None

    @classmethod
    def of(cls, settings: ScorerSettings) -> "Choices":
        """The settings; raises `InputError` for those that are not understood."""
        choices = cls(
            where=settings.where,
            length=settings.one_of("length", ("sum", "mean")),
            end=settings.one_of("end", ("in", "out")),
            unconditional=settings.one_of("unconditional", ("none", "lm", "blank", "noise")),
            alpha=settings.number("alpha", 1.0, low=0, high=10),
            lm=settings.get("lm"),
            noises=settings.count("noises", 3),
            instruction=settings.given.get("instruction"),
        )
        if choices.unconditional == "none":
            for name in ("alpha", "lm", "noises"):
                if name in settings.given:
                    problem = f"{name} is of the unconditional term, and there is none"
                    hint = "add --set unconditional=lm (or blank, or noise)"
                    raise InputError(problem, where=settings.where, hint=hint)
            return replace(choices, alpha=0.0)
        if (choices.unconditional == "lm") != bool(choices.lm):
            problem = "the unconditional term by a language model needs its name, and only that one does"
            given = f"unconditional={choices.unconditional}, lm={choices.lm or '(none)'}"
            allowed = "unconditional=lm with lm=NAME_OR_FOLDER"
            raise InputError(problem, where=settings.where, given=given, allowed=allowed)
        return choices

    def value(self, part: ndarray) -> float:
        """The score of a caption from the log-probabilities of its tokens."""
        return float(part[:, 0].sum() if self.length == "sum" else part[:, 0].mean())

    def described(self, words: "Words") -> dict[str, Any]:
        """What of the settings scores depend on, for identities."""
        facts: dict[str, Any] = {
            "length": self.length,
            "end": self.end,
            "prompt": list(words.prompt),
            # Word after word; caches know it by this name.
            "prediction": "causal",
            "unconditional": self.unconditional,
        }
        return facts if self.unconditional == "none" else {**facts, "alpha": self.alpha}


@dataclass(frozen=True, eq=False)
class Words:
    """Captions to rows of ids: a prompt, the caption's own, the end token where it counts."""

    where: str
    prompt: tuple[int, ...]
    ids: Callable[[str], tuple[int, ...]]
    end: tuple[int, ...]
    room: int

    @classmethod
    def of(cls, decoder: "captioners.Captioner | ImageTextDecoder", chosen: Choices) -> "Words":
        """Those of a captioner, or of a model with a template of prompts."""
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

        return cls(chosen.where, prompt, ids, (end,) if chosen.end == "in" else (), room)

    def row(self, text: str) -> TextRow:
        """The row of a caption, cut to what the model reads; raises `DataError` where it has no tokens."""
        targets = (*self.ids(text)[: self.room], *self.end)
        if not targets:
            hint = "--set end=in counts the end token"
            raise DataError("an empty caption has no likelihood", where=self.where, hint=hint)
        return TextRow((*self.prompt, *targets[:-1]), np.array(targets, dtype=np.int64)[:, None])

    def too_long(self, text: str) -> bool:
        """Whether a caption is cut."""
        return len(self.ids(text)) > self.room


def _remembered(compute: Prior) -> Prior:
    """The same term, each distinct text computed once per process."""
    known: dict[str, float] = {}

    def prior(texts: Sequence[str]) -> list[float]:
        new = [text for text in dict.fromkeys(texts) if text not in known]
        if new:
            known.update(zip(new, compute(new), strict=True))
        return [known[text] for text in texts]

    return prior


def _prior(
    chosen: Choices, decoder: Decoder, words: Words, preparation: Preparation, options: Options
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
        rng = np.random.default_rng(options.seed)
        arrays = [np.clip(rng.normal(128, 64, shape), 0, 255) for _ in range(chosen.noises)]
        facts = {"noises": chosen.noises, "seed": options.seed}
    pictures = [PIL.Image.fromarray(array.astype(np.uint8)) for array in arrays]
    seen = [decoder.see(preparation(picture)) for picture in pictures]

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
