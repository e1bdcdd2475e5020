"""Settings of models, declared once for each kind: `--set`, recipes, errors and lists read them here."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from counterfoil.errors import InputError
from counterfoil.inputs.fields import changes_of, made_of, setting
from counterfoil.inputs.options import fields_of

Kind = TypeVar("Kind")

#: Tokens of a caption, and items of anything that is counted, at most.
_MANY = 999_999
_LENGTH: Any = setting(
    None, "Tokens of a caption at most; by default what the model reads.", low=3, high=_MANY
)
_WORDS = "the protocol's words"
#: Fields of a request that settings or prompts give.
_OWN_FIELDS = frozenset(
    ("model", "messages", "max_tokens", "max_completion_tokens", "temperature", "logprobs", "top_logprobs")
)


def settings_of(kind: type[Kind], given: Mapping[str, Any], *, where: str) -> Kind:
    """The settings of a kind of model, from Python's values or a shell's texts.

    >>> settings_of(VqaSettings, {"score": "p-no"}, where="vqa:llava")
    Traceback (most recent call last):
    counterfoil.errors.InputError: vqa:llava, key 'score': not a choice; given: p-no; allowed: p-yes, log-odds
    """
    return made_of(kind, changes_of(kind, given, where), where=where)


def described(kind: type | None) -> list[dict[str, str]]:
    """Name, help, allowed values and default of each setting of a kind, as texts."""
    rows = fields_of(kind).items() if kind else ()
    defaults = ("" if row.default is None else str(row.default) for _, row in rows)
    return [
        {"name": name, "help": row.option.help, "allowed": row.allowed, "default": default}
        for (name, row), default in zip(rows, defaults, strict=True)
    ]


@dataclass(frozen=True)
class PairSettings:
    """Of cross-encoders."""

    protocol: str = setting(
        "", "How a pair is scored: itm (the default), retrieval or itc (BLIP, BLIP-2), contrastive (FLAVA)."
    )
    length: int | None = _LENGTH


@dataclass(frozen=True)
class RegionSettings:
    """Of cross-encoders that read regions."""

    features: str = setting("", "File or folder of region features; required.")
    tokenizer: str = setting("", "Name or folder of the tokenizer, where the model brings none.", model=True)
    length: int | None = _LENGTH
    match: int | None = setting(None, 'The class that means "the caption is of the image".', low=0, high=1)


@dataclass(frozen=True)
class CheckpointSettings:
    """Of models that `counterfoil train` wrote."""

    regions: str | None = setting(None, "File or folder of region features, of models trained on regions.")


@dataclass(frozen=True)
class VqaSettings:
    """Of questions to image-text-to-text models."""

    score: Literal["p-yes", "log-odds"] = setting("p-yes", "P(yes), or its log odds against no.")
    question: str = setting(
        'Does this figure show "{}"? Please answer Yes or No.', "The question, with {} for the caption."
    )


@dataclass(frozen=True)
class ChatModelSettings:
    """Of chat endpoints."""

    protocol: Literal["yes-no", "choose", "two-images", "answer"] = setting("yes-no", "What is asked.")
    question: str = setting("", f"The question, with {{}} for the caption or captions; {_WORDS} by default.")
    image_question: str = setting("", f"Of choose, the question about images; {_WORDS} by default.")
    read: Literal["auto", "logprobs", "text"] | None = setting(
        None, "How yes and no are read; by default what the endpoint gives."
    )
    score: Literal["p-yes", "log-odds"] | None = setting(
        None, "Of log-probabilities: P(yes) (the default), or its log odds against no."
    )
    order: Literal["seeded", "balanced", "given"] | None = setting(
        None, "Order of options: drawn from the seed (the default), each equally often first, or as given."
    )
    max_tokens: int = setting(16, "Tokens of an answer at most.", low=1, high=_MANY)
    tokens_field: Literal["max_tokens", "max_completion_tokens"] = setting(
        "max_tokens", "What a request calls that limit."
    )
    system: str = setting("", "A system prompt.")
    extra: str = setting("", 'A JSON object of further fields of a request, {"reasoning_effort": "low"}.')
    images: Literal["yes", "no"] = setting("yes", "Send images.")
    temperature: float = setting(0.0, "Temperature of sampling.", low=0, high=2)
    detail: Literal["low", "high", "auto"] | None = setting(None, "How closely images are looked at.")
    concurrency: int = setting(8, "Requests under way at once.", low=1, high=1024)
    rpm: float = setting(0.0, "Requests a minute at most; 0 is no limit.", low=0, high=1_000_000)
    retries: int = setting(6, "Tries after the first.", low=0, high=100)
    wait: float = setting(1.0, "Seconds before the second try; doubled every time.", low=0, high=60)
    timeout: float = setting(120.0, "Seconds of silence until a request is given up.", low=0.01, high=3600)
    input_price: float = setting(0.0, "Price of a million tokens read.", low=0, high=1_000_000)
    output_price: float = setting(0.0, "Price of a million tokens written.", low=0, high=1_000_000)

    def __post_init__(self) -> None:
        pairs = self.protocol == "yes-no"
        if self.read not in (None, "text") and not pairs:
            raise InputError(f"answers of {self.protocol} are texts", given=self.read, allowed="read=text")
        if self.score is not None and (self.read == "text" or not pairs):
            raise InputError("a score belongs to log-probabilities", allowed="read=logprobs")
        if self.order is not None and self.protocol in ("yes-no", "answer"):
            raise InputError(
                f"{self.protocol} has no options to order", given=self.order, allowed=("choose", "two-images")
            )
        try:
            extra = self.own_fields
        except ValueError:
            extra = None
        if not isinstance(extra, dict) or not _OWN_FIELDS.isdisjoint(extra):
            allowed = 'a JSON object such as {"reasoning_effort": "low"}, without fields that are settings'
            raise InputError("no fields of a request", given=self.extra, allowed=allowed)

    @property
    def own_fields(self) -> Any:
        """Fields of the endpoint's own that go into a request."""
        return json.loads(self.extra or "{}")


@dataclass(frozen=True)
class LikelihoodSettings:
    """Of the likelihood of captions."""

    length: Literal["sum", "mean"] = setting("sum", "The whole caption, or the mean per token.")
    end: Literal["in", "out"] = setting("in", "Count the token that ends a caption.")
    unconditional: Literal["none", "lm", "blank", "noise"] = setting(
        "none", "What log P(caption) is taken off from: a language model, a grey picture, pictures of noise."
    )
    alpha: float | None = setting(None, "Weight of that term; 1 by default.", low=0, high=10)
    lm: str = setting("", "The causal language model of unconditional=lm.", model=True)
    noises: int | None = setting(None, "Pictures of unconditional=noise; 3 by default.", low=1, high=_MANY)
    instruction: str | None = setting(None, "The text that the caption follows; by default the model's own.")

    def __post_init__(self) -> None:
        if self.unconditional == "none":
            given = [name for name in ("alpha", "lm", "noises") if getattr(self, name) not in (None, "")]
            if given:
                problem = f"{given[0]} is of the unconditional term, and there is none"
                raise InputError(problem, hint="add --set unconditional=lm (or blank, or noise)")
        elif (self.unconditional == "lm") != bool(self.lm):
            problem = "the unconditional term by a language model needs its name, and only that one does"
            given_lm = f"unconditional={self.unconditional}, lm={self.lm or '(none)'}"
            raise InputError(problem, given=given_lm, allowed="unconditional=lm with lm=NAME_OR_FOLDER")


@dataclass(frozen=True)
class BlindSettings:
    """Of blind baselines; one takes each."""

    captions: str = setting("", "Of unigram: the file of captions that words are counted in.")
    image: str = setting("", "Of constant-image: the image.")


@dataclass(frozen=True)
class LanguageModelSettings:
    """Of language models."""

    score: Literal["log-likelihood", "pseudo-log-likelihood", "mean", "perplexity"] | None = setting(
        None, "The (pseudo-)log-likelihood (the default), its mean per token, or minus the perplexity."
    )
    end: Literal["out", "in"] | None = setting(None, "Of causal models: count the end token; out by default.")
    kind: Literal["causal", "masked"] | None = setting(None, "By default what the configuration says.")
    context: str = setting("", "Of causal models: the text before the caption; by default the begin token.")


@dataclass(frozen=True)
class SentenceSettings:
    """Of encoders of sentences."""

    pooling: Literal["mean", "cls", "last"] | None = setting(
        None, "Of the states of tokens; by default what the model's files say, else mean."
    )
    length: int | None = _LENGTH


@dataclass(frozen=True)
class PlausibilitySettings:
    """Of models that give a probability."""

    score: Literal["probability", "logit"] = setting("probability", "The probability, or its logit.")


@dataclass(frozen=True)
class ClassifierSettings(PlausibilitySettings):
    """Of classifiers of texts."""

    label: str = setting("", "Name or number of the class that is the score.")


@dataclass(frozen=True)
class PeopleSettings:
    """Of people's answers."""

    model: str = setting("", "How answers to one query become one label; by default their mean counts.")
    database: str = setting("", "Address of a campaign's database that is not in its folder.")
    campaign: str = setting("", "Folder of the campaign that a table of judgements answers.")
