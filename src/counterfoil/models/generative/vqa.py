"""P(yes) to a question about a caption (`vqa:NAME_OR_FOLDER`), in any spelling of yes that is one token.

The default question is that of `VqaSettings` in `models/settings.py`.

Source: Lin et al. 2024, "Evaluating text-to-visual generation with image-to-text generation" (VQAScore).
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy import ndarray

from counterfoil.errors import ModelError
from counterfoil.models.base import DEFAULT, Options, check_template, filled
from counterfoil.models.generative.image_text import ImageTextDecoder, how_computed, opened
from counterfoil.models.generative.prefixes import GenerativeModel, TextRow
from counterfoil.models.generative.templates import PROBES, Template, common, plain_ids
from counterfoil.models.runtime import LoadContext
from counterfoil.models.settings import VqaSettings, settings_of

SPELLINGS = {"yes": ("Yes", " Yes", "yes", " yes"), "no": ("No", " No", "no", " no")}


def load(argument: str, options: Options = DEFAULT) -> GenerativeModel:
    where = f"vqa:{argument}"
    context = LoadContext.of(where, options, "settings")
    settings = settings_of(VqaSettings, options.settings, where=where)
    score, question = settings.score, settings.question
    check_template(question, "the question", where=where, allowed=f"such as {VqaSettings().question}")
    model = opened(argument, context)
    decoder = model.decoder(where)
    answers = {answer: spelled(decoder.template, answer, where) for answer in SPELLINGS}
    ask = Question(question, decoder, [*answers["yes"], *answers["no"]])
    read = common([decoder.template.text(question.replace("{}", probe)) for probe in PROBES])
    decoder = decoder.checked([ask.row(probe) for probe in PROBES[1:3]], read, where)
    many = len(answers["yes"])

    def value(part: ndarray) -> float:
        (logs,) = part
        yes, no = (np.logaddexp.reduce(side) for side in (logs[:many], logs[many:]))
        return float(np.exp(yes)) if score == "p-yes" else float(yes) - float(no)

    spellings = {answer: [[one] for one in ids] for answer, ids in answers.items()}
    facts = {"score": score, "template": decoder.template.digest, "answers": spellings}
    identity = replace(model.identity, prompt=question, options={**model.identity.options, **facts})
    provenance = {**model.versions, "computed": how_computed(decoder)}
    return GenerativeModel(
        identity, decoder, ask.row, lambda _, parts: list(map(value, parts)), ask.too_long, provenance
    )


def spelled(template: Template, answer: str, where: str) -> list[int]:
    """The ids of an answer right after a prompt: all its spellings of one token."""
    unknown = template.tokenizer.unk_token_id
    spellings = {template.words(spelling) for spelling in SPELLINGS[answer]}
    token_ids = sorted(ids[0] for ids in spellings if len(ids) == 1 and ids[0] != unknown)
    if not token_ids:
        problem = f"its tokenizer has no tokens for {answer}"
        given = f"a vocabulary of {len(template.tokenizer)}"
        allowed = ", ".join(repr(text) for text in SPELLINGS[answer])
        raise ModelError(problem, where=where, given=given, allowed=allowed)
    return token_ids


class Question:
    """A question about captions, and the ids of answers whose log-probabilities are wanted."""

    def __init__(self, question: str, decoder: ImageTextDecoder, answers: Sequence[int]) -> None:
        self.question, self.template, self.answers = question, decoder.template, answers
        self.room = decoder.room(len(self.template.text(filled(question, ""))) + 1)

    def row(self, text: str) -> TextRow:
        prompt = self.template.text(filled(self.question, self.shortened(text)))
        return TextRow(prompt, np.array([self.answers]))

    def too_long(self, text: str) -> bool:
        return self.shortened(text) != text

    def shortened(self, text: str) -> str:
        # No tokenizer makes more ids than bytes.
        if len(text.encode("utf-8", "surrogatepass")) <= self.room:
            return text
        ids = plain_ids(self.template.tokenizer, text)
        return text if len(ids) <= self.room else str(self.template.tokenizer.decode(ids[: self.room]))
