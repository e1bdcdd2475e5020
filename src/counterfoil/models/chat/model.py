"""Chat models: pairs one at a time, or whole questions, read from what an endpoint answers."""

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, groupby
from pathlib import Path
from typing import Any, cast
from urllib.parse import urlsplit

import numpy as np

from counterfoil.benchmarks.records import Image
from counterfoil.errors import InputError, ModelError
from counterfoil.models import base
from counterfoil.models.chat import protocols
from counterfoil.models.chat.endpoint import ChatRequest, Endpoint, Reply
from counterfoil.models.chat.http_client import EndpointSettings
from counterfoil.models.settings import ChatModelSettings, settings_of

_PROBE = "Answer with one word, yes or no: is seven larger than three?"
#: Raised where prompts or readings of the same settings change.
_REVISION = "2"


def load(argument: str, options: base.Options = base.DEFAULT) -> "ChatModel":
    """The model `chat:URL#MODEL`; nothing is sent before a score is wanted."""
    where = f"chat:{argument}"
    base.reject_unused_options(where, options, "settings", "unanswered", "api_key")
    url, mark, model = argument.partition("#")
    if not mark or not model.strip():
        allowed = "chat:http://HOST:PORT/v1#MODEL"
        raise InputError("the endpoint lacks its model", given=where, allowed=allowed)
    url = address(url, where=where)
    settings = settings_of(ChatModelSettings, options.settings, where=where)
    words = {"question": settings.question, "image_question": settings.image_question}
    prompts = protocols.Prompts.of(settings.protocol, **words, where=where)
    reading = settings.read or ("auto" if settings.protocol == "yes-no" else "text")
    unanswered = cast(base.Unanswered, options.unanswered)
    endpoint = Endpoint(EndpointSettings(**vars(settings), url=url, model=model), key=options.api_key)
    return ChatModel(endpoint, prompts, reading, options.seed, unanswered)


def address(url: str, *, where: str) -> str:
    """The address without a slash at its end; raises `InputError` for what is none, or carries secrets.

    >>> address("http://localhost:8000/v1/", where="chat")
    'http://localhost:8000/v1'
    >>> address("localhost:8000", where="chat")
    Traceback (most recent call last):
    counterfoil.errors.InputError: chat: no address of an endpoint; given: localhost:8000; allowed: ...
    """
    try:
        parts = urlsplit(url)
        port_fits = parts.port is None or parts.port > 0
    except ValueError:
        parts, port_fits = urlsplit(""), False
    if parts.scheme not in ("http", "https") or not parts.hostname or not port_fits:
        allowed = "http://HOST:PORT/v1#MODEL or https://HOST/v1#MODEL"
        raise InputError("no address of an endpoint", where=where, given=url or "(empty)", allowed=allowed)
    if parts.username or parts.password or parts.query:
        problem = "an address with a user, a password or a query would be written into results"
        allowed = "http://HOST:PORT/v1#MODEL, and the key in an environment variable"
        raise InputError(problem, where=where.partition("//")[0], allowed=allowed)
    return url.rstrip("/")


@dataclass(eq=False)
class ChatModel:
    """A chat model behind an endpoint: pairs under `yes-no`, else picks among the items of questions.

    A pair's score is P(yes) or the log odds of log-probabilities, 1 or 0 of texts, NaN without an answer.
    """

    endpoint: Endpoint
    prompts: protocols.Prompts
    #: `logprobs` or `text`; `auto` until one small request finds out.
    reading: str
    seed: int
    unanswered: base.Unanswered
    #: Requests for pairs and questions, those with a kept answer among them; and what became of them.
    requests: int = field(default=0, init=False)
    refused: int = field(default=0, init=False)
    unread: int = field(default=0, init=False)
    truncated: int = field(default=0, init=False)

    @property
    def settings(self) -> EndpointSettings:
        return self.endpoint.settings

    @property
    def _name(self) -> str:
        return f"chat:{self.settings.url}#{self.settings.model}"

    @property
    def does(self) -> tuple[base.Ability, ...]:
        return ("scores_pairs",) if self.prompts.protocol == "yes-no" else ("picks",)

    @property
    def picks_matchings(self) -> bool:
        return self.prompts.protocol == "two-images"

    @property
    def identity(self) -> base.Identity:
        """Everything that answers depend on; a reading of `auto` is first found out."""
        settings = self.settings
        by_logprobs = self.found_reading() == "logprobs"
        ordered = self.prompts.protocol in ("choose", "two-images")
        options: dict[str, Any] = {"protocol": self.prompts.protocol, "read": self.reading}
        score, most = {"score": settings.score or "p-yes"}, {"max_tokens": settings.max_tokens}
        options |= {"temperature": settings.temperature, **(score if by_logprobs else most)}
        unusual = {
            "detail": settings.detail,
            "system": settings.system,
            "extra": json.dumps(settings.own_fields, sort_keys=True) if settings.own_fields else "",
            "images": "no" if settings.images == "no" else "",
            "image_question": self.prompts.image_question,
        }
        options |= {name: value for name, value in unusual.items() if value}
        options |= {"order": settings.order or "seeded", "seed": self.seed} if ordered else {}
        return base.Identity(self._name, _REVISION, prompt=self.prompts.question, options=options)

    @property
    def provenance(self) -> Mapping[str, Any]:
        """What the endpoint calls the models that answered, and how many answers were refused or unread."""
        counts = {name: getattr(self, name) for name in ("refused", "unread", "truncated")}
        return {"models": sorted(self.endpoint.spent.models), **counts}

    def kept_in(self, folder: Path) -> "ChatModel":
        return replace(self, endpoint=self.endpoint.kept_in(folder))

    def score_pairs(self, batches: base.PairBatches, *, workers: int = 0) -> base.BatchNumbers:
        if not batches:
            return
        by_logprobs = self.found_reading() == "logprobs"
        most = 1 if by_logprobs else self.settings.max_tokens
        requests = []
        for image, caption in chain.from_iterable(batches):
            parts = (image, base.filled(self.prompts.question, base.text_of(caption)))
            requests.append(ChatRequest(self._sent(parts), most, by_logprobs))
        self.requests += len(requests)
        replies = self.endpoint.ask(requests)
        for batch in batches:
            yield np.array([self._score(next(replies), by_logprobs) for _ in batch], dtype=np.float64)

    def pick(self, questions: Sequence[base.QuestionItems]) -> Iterator[base.Picks]:
        order = self.settings.order or "seeded"
        requests = protocols.turns(questions, self.prompts, order=order, seed=self.seed)
        self.requests += len(requests)
        sent = [ChatRequest(self._sent(turn.parts), self.settings.max_tokens) for turn in requests]
        replies = self.endpoint.ask(sent)
        for number, group in groupby(requests, key=lambda turn: turn.question):
            answers = []
            for turn in group:
                reply = next(replies)
                self.refused += reply.refused
                if not reply.refused and turn.read(reply.answer) is None:
                    self._not_read(reply)
                answers.append((turn, None if reply.refused else reply.answer))
            yield protocols.picked(questions[number], answers)

    def found_reading(self) -> str:
        """`logprobs` or `text`: as set, else as one small request finds that the endpoint answers."""
        if self.reading == "auto":
            (reply,) = self.endpoint.ask([ChatRequest((_PROBE,), 1, True)])
            top = reply.top or ()
            given = protocols.are_logprobs(top) and protocols.yes_no_logprobs(top)
            self.reading = "logprobs" if given else "text"
        return self.reading

    def spent(self) -> str:
        used, again = self.endpoint.spent, f"{self.endpoint.spent.retried:,} of them again"
        tokens = used.prompt_tokens, used.completion_tokens
        prices = self.settings.input_price, self.settings.output_price
        cost = sum(price * many / 1e6 for price, many in zip(prices, tokens, strict=True))
        words = [
            f"answers read as {'log-probabilities' if self.reading == 'logprobs' else 'text'}",
            f"{used.requests:,} requests ({again}), {used.cached:,} answers from before",
            f"{used.prompt_tokens:,} + {used.completion_tokens:,} tokens",
            f"cost {cost:,.4f}" if any(prices) else "",
            f"{self.refused:,} refused, {self.unread:,} not readable",
            f"{self.truncated:,} cut off at {self.settings.max_tokens:,} tokens" if self.truncated else "",
        ]
        return "; ".join(filter(None, words))

    def _sent(self, parts: protocols.Parts) -> protocols.Parts:
        """What of a prompt is sent; raises `InputError` where images that are not sent are the options."""
        if self.settings.images == "yes":
            return parts
        if sum(isinstance(part, Image) for part in parts) > 1:
            problem = "without images there is nothing to choose among"
            allowed = "yes-no, or choices among captions"
            raise InputError(problem, where=self.settings.model, given="images=no", allowed=allowed)
        return tuple(part for part in parts if not isinstance(part, Image))

    def _not_read(self, reply: Reply) -> None:
        """Count an answer that says nothing; raises `ModelError` for one that was cut off before it did."""
        if not reply.truncated:
            self.unread += 1
            return
        self.truncated += 1
        if self.unanswered == "refuse":
            problem = f"an answer was cut off at {self.settings.max_tokens:,} tokens before it said anything"
            hint = "let it write more, a reasoning model thinks first: --set max_tokens=2048"
            raise ModelError(problem, where=self._name, given=reply.text[-80:] or "(empty)", hint=hint)

    def _score(self, reply: Reply, by_logprobs: bool) -> float:
        if reply.refused:
            self.refused += 1
            return math.nan
        if not by_logprobs:
            answer = protocols.yes_or_no(reply.answer)
            if answer is None:
                self._not_read(reply)
            return math.nan if answer is None else float(answer)
        if reply.top is None:
            given, hint = reply.text or "(empty)", "read all answers as text: --set read=text"
            raise ModelError("an answer without log-probabilities", where=self._name, given=given, hint=hint)
        pair = protocols.yes_no_logprobs(reply.top)
        self.unread += pair is None
        if pair is None:
            return math.nan
        return math.exp(pair[0]) if self.settings.score != "log-odds" else pair[0] - pair[1]
