"""Answers yes or no: the probability of yes to a question about a caption (`vqa:NAME_OR_FOLDER`).

The score is VQAScore's: the probability that the model's answer to `Does this figure show "CAPTION"? Please
answer Yes or No.` begins with yes, in any spelling that is one token. The log-odds of yes against no have a
finer scale, which ties less often in half precision.

Source: Lin et al. 2024, "Evaluating text-to-visual generation with image-to-text generation".
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy import ndarray

from counterfoil.errors import ModelError
from counterfoil.models.base import DEFAULT, Options, check_template, filled
from counterfoil.models.generative.image_text import ImageTextDecoder, opened, sharing
from counterfoil.models.generative.prefixes import GenerativeScorer, TextRow
from counterfoil.models.generative.templates import PROBES, Template, common, plain_ids
from counterfoil.models.runtime import LoadContext

QUESTION = 'Does this figure show "{}"? Please answer Yes or No.'
SCORES = ("p-yes", "log-odds")
#: How an answer may be spelled at the beginning of the model's turn.
SPELLINGS = {"yes": ("Yes", " Yes", "yes", " yes"), "no": ("No", " No", "no", " no")}


def load(argument: str, options: Options = DEFAULT) -> GenerativeScorer:
    """The scorer by the model in a local folder, or of that name on the hub.

    Scores are probabilities in [0, 1] (`score=p-yes`), or the logarithm of the ratio of the probabilities of
    yes and of no (`score=log-odds`). Raises `InputError` for a question without `{}`, `ModelError` as
    `image_text.opened` and `ChatTemplate.of` do, and for models whose tokenizer cannot spell yes and no.
    """
    where = f"vqa:{argument}"
    context = LoadContext.of(where, options, "settings")
    settings = context.settings
    score, question = settings.one_of("score", SCORES), settings.get("question", QUESTION)
    check_template(question, "the question", where=where, allowed=f"such as {QUESTION}")
    model = opened(argument, context)
    decoder = model.decoder(where)
    answers = {answer: spelled(decoder.template, answer, where) for answer in SPELLINGS}
    ask = Question(question, decoder, answers)
    read = common([decoder.template.text(question.replace("{}", probe)) for probe in PROBES])
    decoder = decoder.checked([row for probe in PROBES[1:3] for row in ask.rows(probe)], read, where)
    ask = Question(question, decoder, answers)
    spellings = {answer: [list(ids) for ids in answers[answer]] for answer in answers}
    facts = {"score": score, "template": decoder.template.digest, "answers": spellings}
    identity = replace(model.identity, prompt=question, options={**model.identity.options, **facts})
    return GenerativeScorer(
        identity=identity,
        decoder=decoder,
        rows=ask.rows,
        values=lambda _, parts: list(map(ask.p_yes if score == "p-yes" else ask.log_odds, parts)),
        too_long=lambda text: ask.shortened(text) != text,
        provenance={**model.versions, "computed": sharing(decoder)},
    )


def spelled(template: Template, answer: str, where: str) -> tuple[tuple[int, ...], ...]:
    """The ids of an answer right after a prompt: all spellings of one token, or else all of several.

    Raises `ModelError` where the tokenizer has no tokens for it.
    """
    unknown = template.tokenizer.unk_token_id
    spellings = {template.words(spelling) for spelling in SPELLINGS[answer]}
    known = sorted(ids for ids in spellings if ids and unknown not in ids)
    if not known:
        problem = f"its tokenizer has no tokens for {answer}"
        given = f"a vocabulary of {len(template.tokenizer)}"
        allowed = ", ".join(repr(text) for text in SPELLINGS[answer])
        raise ModelError(problem, where=where, given=given, allowed=allowed)
    return tuple(ids for ids in known if len(ids) == 1) or tuple(known)


class Question:
    """A question about captions: the rows of ids to read, and the scores of what comes out."""

    def __init__(
        self, question: str, decoder: ImageTextDecoder, answers: Mapping[str, Sequence[Sequence[int]]]
    ):
        self.question = question
        self.template = decoder.template
        self.answers = answers
        #: One row serves all answers of one token; an answer of several has a row of its own.
        self.single = [ids[0] for spellings in answers.values() for ids in spellings if len(ids) == 1]
        self.several = [ids for spellings in answers.values() for ids in spellings if len(ids) > 1]
        longest = max((len(ids) for ids in self.several), default=1)
        self.room = decoder.room(len(self.template.text(filled(question, ""))) + longest)

    def rows(self, text: str) -> list[TextRow]:
        """The rows of a caption, cut to what the model reads."""
        prompt = self.template.text(filled(self.question, self.shortened(text)))
        one = [TextRow(prompt, np.array([self.single]))] if self.single else []
        return one + [TextRow((*prompt, *ids[:-1]), np.array(ids)[:, None]) for ids in self.several]

    def shortened(self, text: str) -> str:
        """The beginning of a caption that the model has room for."""
        # No tokenizer makes more ids than bytes.
        if len(text.encode("utf-8", "surrogatepass")) <= self.room:
            return text
        ids = plain_ids(self.template.tokenizer, text)
        return text if len(ids) <= self.room else str(self.template.tokenizer.decode(ids[: self.room]))

    def log_probability(self, answer: str, parts: Sequence[ndarray]) -> float:
        """Of all spellings together, from the log-probabilities of the rows."""
        logs = [
            parts[0][0, self.single.index(ids[0])]
            if len(ids) == 1
            else parts[bool(self.single) + self.several.index(ids)].sum()
            for ids in self.answers[answer]
        ]
        return float(np.logaddexp.reduce(logs))

    def p_yes(self, parts: Sequence[ndarray]) -> float:
        """The probability of yes, in [0, 1] up to rounding."""
        return float(np.exp(self.log_probability("yes", parts)))

    def log_odds(self, parts: Sequence[ndarray]) -> float:
        """log P(yes) - log P(no)."""
        return self.log_probability("yes", parts) - self.log_probability("no", parts)
