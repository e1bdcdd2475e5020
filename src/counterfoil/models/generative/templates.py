"""Templates of prompts as token ids; control tokens in a caption are encoded as plain text."""

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

import numpy as np
import PIL.Image
from numpy import ndarray

from counterfoil.errors import ModelError
from counterfoil.inputs.files import digest_value
from counterfoil.models.generative.prefixes import Seen
from counterfoil.models.hf_loading import library_of, quiet
from counterfoil.models.runtime import model_errors

#: Texts whose first letters differ, so that what is common to their prompts belongs to the template.
PROBES = ("a red cat on the mat", "Two dogs", "3 horses in the grass", '"No", he wrote')
_GREY = np.full((56, 84, 3), 128, np.uint8)
_TYPE_IDS = ("token_type_ids", "mm_token_type_ids")


@dataclass(frozen=True, eq=False)
class ChatTemplate:
    """The chat template of an image-text-to-text model: user's turn, picture first, then the model's turn."""

    processor: Any
    tokenizer: Any
    image_id: int | None
    where: str
    #: Ids of a prompt without an expanded picture that belong to what stands before the text.
    cut: int = 0
    #: Text between the last control token of a prompt and the model's first word, and what comes before that.
    anchor: str = ""
    lead: str = ""
    #: The kind (`token_type_ids`) of the model's own words.
    written: int = 0

    @classmethod
    def of(cls, processor: Any, image_id: int | None, where: str) -> "ChatTemplate":
        """The template; raises `ModelError` where it is missing, ignores pictures or cannot be followed."""
        tokenizer = processor.tokenizer
        if getattr(processor, "chat_template", None) is None:
            problem = "the model has no chat template, so that nothing says how it is asked"
            hint = "save one with its processor (chat_template.jinja)"
            raise ModelError(problem, where=where, given=type(processor).__name__, hint=hint)
        if "sanitize_control_tokens" not in inspect.signature(tokenizer.apply_chat_template).parameters:
            problem = "this version of transformers cannot make control tokens in captions harmless"
            raise ModelError(problem, where=where, hint="pip install -U transformers")
        what = "its chat template makes no prompt of a picture and a text"
        with model_errors(what, where=where, given=type(processor).__name__):
            bare = cls(processor, tokenizer, image_id, where)
            cut, plain = bare._cut(), bare._rendered(PROBES[0])
            marks = [token.content for token in tokenizer.added_tokens_decoder.values()]
            ends = (plain.rfind(mark) + len(mark) for mark in marks if mark in plain)
            anchor = plain[max(ends, default=0) :]
            replied = bare._rendered(PROBES[0], reply=PROBES[1])
            lead = replied[len(plain) : replied.rfind(PROBES[1])] if replied.startswith(plain) else ""
            template = cls(processor, tokenizer, image_id, where, cut, anchor, lead)
            head = template.see(_GREY).head
            for probe in PROBES:
                if list(template._seen(_GREY, probe)["input_ids"][0]) != [*head, *template.text(probe)]:
                    problem = "its chat template puts something before the picture that depends on the text"
                    raise ModelError(problem, where=where, given=type(processor).__name__)
        return template

    @property
    def digest(self) -> str:
        return digest_value([self.processor.chat_template])

    def text(self, text: str) -> tuple[int, ...]:
        """The ids after the picture: the user's text, and the beginning of the model's turn."""
        return tuple(self._ids(text)[self.cut :])

    def words(self, text: str) -> tuple[int, ...]:
        """The ids of the model's own `text` right after a prompt: those that it adds to the prompt's."""
        parts = self.anchor, self.anchor + text, text
        before, both, alone = (plain_ids(self.tokenizer, part) for part in parts)
        return tuple(both[len(before) :] if both[: len(before)] == before else alone)

    def end(self) -> int:
        replied = self._rendered(PROBES[0], reply=PROBES[1], ended=True)
        rest = replied[replied.rfind(PROBES[1]) + len(PROBES[1]) :]
        ids = self.tokenizer(rest, add_special_tokens=False)["input_ids"]
        marked = ids and ids[0] in self.tokenizer.added_tokens_decoder
        ended = ids[0] if marked else self.tokenizer.eos_token_id
        if ended is None:
            raise ModelError("no token ends the model's turn", where=self.where, hint="--set end=out")
        return int(ended)

    def see(self, picture: ndarray) -> Seen:
        return _seen(self._seen(picture, PROBES[0]), self.text(PROBES[0]), self.where)

    def _seen(self, picture: ndarray, text: str) -> dict[str, Any]:
        # The text is a probe, which needs no care; some processors cannot take care beside a picture.
        return dict(self.inputs([self.user_message(text, PIL.Image.fromarray(picture))]))

    def inputs(self, messages: Sequence[Any], **options: Any) -> Any:
        how = {"tokenize": True, "return_dict": True, "return_tensors": "pt", **options, **self.options()}
        return self.processor.apply_chat_template(list(messages), add_generation_prompt=True, **how)

    def user_message(self, text: str, picture: Any = None) -> list[dict[str, Any]]:
        image = {"type": "image"} if picture is None else {"type": "image", "image": picture}
        return [{"role": "user", "content": [image, {"type": "text", "text": text}]}]

    def _ids(self, text: str) -> list[int]:
        how: dict[str, Any] = {"chat_template": self._template(), "return_dict": False, **self.options()}
        how |= {"add_generation_prompt": True, "tokenize": True, "sanitize_control_tokens": True}
        ids: list[int] = self.tokenizer.apply_chat_template(self.user_message(text), **how)
        return ids

    def _rendered(self, text: str, *, reply: str = "", ended: bool = False) -> str:
        messages = self.user_message(text)
        if reply:
            messages.append({"role": "assistant", "content": [{"type": "text", "text": reply}]})
        how: dict[str, Any] = {"chat_template": self._template(), "tokenize": False, **self.options()}
        how |= {"add_generation_prompt": not reply, "continue_final_message": bool(reply) and not ended}
        rendered: str = self.tokenizer.apply_chat_template(messages, **how)
        return rendered

    def _template(self) -> str:
        template = self.processor.chat_template
        return str(template["default"] if isinstance(template, Mapping) else template)

    def options(self) -> dict[str, bool]:
        # A model that thinks first would answer after its thoughts.
        return {"enable_thinking": False} if "enable_thinking" in self._template() else {}

    def _cut(self) -> int:
        """How many ids of a prompt, its picture not expanded, stand before the text."""
        cuts = []
        for probe in PROBES[:2]:
            ids = self._ids(probe)
            seen = self._seen(_GREY, probe)
            if "cross_attention_mask" in seen:
                problem = "attends to pictures beside its prompt, as Mllama does, which is not supported"
                hint = "serve it and ask it as chat:URL#MODEL"
                raise ModelError(problem, where=self.where, given=type(self.processor).__name__, hint=hint)
            whole = [int(token) for token in seen["input_ids"][0]]
            same = 0
            while same < min(len(ids), len(whole)) and ids[-1 - same] == whole[-1 - same]:
                same += 1
            marks = [i + 1 for i, token in enumerate(ids) if token == self.image_id]
            if whole == ids:
                problem = "its chat template has no place for a picture"
                raise ModelError(problem, where=self.where, given=self._template()[:80])
            cuts.append(max([len(ids) - same, *marks]))
        return max(cuts)


@dataclass(frozen=True, eq=False)
class PaliGemmaTemplate:
    """PaliGemma's prompt: picture, begin mark, text and a line break (big_vision; `PaliGemmaProcessor`)."""

    processor: Any
    tokenizer: Any
    where: str
    lead: str = ""
    written: int = 1
    digest: str = field(default="paligemma")

    def text(self, text: str) -> tuple[int, ...]:
        return (self.tokenizer.bos_token_id, *plain_ids(self.tokenizer, f"{text}\n"))

    def words(self, text: str) -> tuple[int, ...]:
        return tuple(plain_ids(self.tokenizer, text))

    def end(self) -> int:
        return int(self.tokenizer.eos_token_id)

    def see(self, picture: ndarray) -> Seen:
        text, image = self.processor.image_token + PROBES[0], PIL.Image.fromarray(picture)
        with quiet(library_of()):  # the library's own use of NumPy warns
            inputs = dict(self.processor(text=text, images=image, return_tensors="pt"))
        inputs.pop("labels", None)
        return _seen(inputs, self.text(PROBES[0]), self.where)


Template = ChatTemplate | PaliGemmaTemplate


def plain_ids(tokenizer: Any, text: str) -> list[int]:
    """The ids of a text without any marks; what looks like a control token is plain text."""
    encoding = tokenizer(text, add_special_tokens=False, split_special_tokens=True, verbose=False)
    return [int(token) for token in encoding["input_ids"]]


def common(rows: Sequence[Sequence[int]]) -> tuple[int, ...]:
    columns = zip(*rows, strict=False)
    return tuple(column[0] for column in takewhile(lambda column: len(set(column)) == 1, columns))


def _seen(inputs: dict[str, Any], tail: tuple[int, ...], where: str) -> Seen:
    """The picture of a prompt and its ids before the text, which must be `tail`; else raises `ModelError`."""
    ids = tuple(int(token) for token in inputs.pop("input_ids")[0])
    head = ids[: len(ids) - len(tail)]
    if ids[len(head) :] != tail:
        raise ModelError("its processor and its tokenizer disagree on the ids of a prompt", where=where)
    others = [name for name in _TYPE_IDS if name in inputs]
    kinds = {name: tuple(map(int, inputs.pop(name)[0][: len(head)])) for name in others}
    inputs.pop("attention_mask", None)
    return Seen(len(head), inputs, head, kinds)
