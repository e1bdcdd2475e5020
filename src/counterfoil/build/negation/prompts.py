"""Prompts that ask a language model for a negative caption, and its answers, read."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from counterfoil.build.negation.rules import SUGAR_CREPE
from counterfoil.errors import DataError, UnknownNameError
from counterfoil.inputs.files import parse_toml, read_toml

#: The form of an answer, as endpoints take it, and how it begins where a local model is made to keep it.
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"caption": {"type": "string"}},
    "required": ["caption"],
    "additionalProperties": False,
}
HEAD = '{"caption": "'

#: What models write in place of an answer.
_REFUSAL = re.compile(
    r"^(i'?m sorry|i am sorry|sorry|i can(no|')t|i cannot|as an ai|i am unable|i'm unable)", re.I
)
REFUSED, UNREADABLE = "refused", "unreadable answer"


@dataclass(frozen=True)
class NegationPrompts:
    """What a model is asked: a template with {caption} and {task}, and a task and examples per category."""

    template: str
    tasks: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]]

    def turns(self, caption: str, category: str) -> tuple[str, ...]:
        """A conversation up to the question: that about each example with its answer, then the caption's."""
        messages = []
        for before, after in self.tasks[category][1]:
            messages += [self._question(before, category), json.dumps({"caption": after}, ensure_ascii=False)]
        return (*messages, self._question(caption, category))

    def _question(self, caption: str, category: str) -> str:
        return self.template.replace("{task}", self.tasks[category][0]).replace("{caption}", caption)


def read_prompts(path: Path | str) -> NegationPrompts:
    """Prompts of one's own (TOML): `template`, and a table per category with `task` and `examples`.

    What the file leaves out is as in `PROMPTS`.
    """
    return _prompts(read_toml(path), PROMPTS, where=path)


def _prompts(values: dict[str, Any], usual_prompts: NegationPrompts, *, where: object) -> NegationPrompts:
    template = values.pop("template", usual_prompts.template)
    if not isinstance(template, str) or "{caption}" not in template:
        raise DataError("no template", where=where, given=template, allowed="a text with {caption}")
    tasks = dict(usual_prompts.tasks)
    for category, entry in values.items():
        place = f"{where}, {category}"
        if category not in SUGAR_CREPE:
            raise UnknownNameError("category", category, ("template", *SUGAR_CREPE), where=where)
        if not isinstance(entry, dict):
            raise DataError("no table", where=place, given=entry, allowed="task, examples")
        if strange := [key for key in entry if key not in ("task", "examples")]:
            raise UnknownNameError("key", strange[0], ("task", "examples"), where=place)
        task, pairs = (
            entry.get(key, usual) for key, usual in zip(("task", "examples"), tasks[category], strict=True)
        )
        if not isinstance(task, str):
            raise DataError("no task", where=place, given=task, allowed="a text")
        listed = isinstance(pairs, list | tuple) and all(isinstance(pair, list | tuple) for pair in pairs)
        if not listed or any(len(pair) != 2 or not all(isinstance(v, str) for v in pair) for pair in pairs):
            raise DataError("no examples", where=place, given=pairs, allowed='[["caption", "negative"], ...]')
        tasks[category] = task, tuple((before, after) for before, after in pairs)
    return NegationPrompts(template, tasks)


_FILE = files("counterfoil.build.negation") / "prompts.toml"
#: Those that are used where the user gives none.
PROMPTS = _prompts(
    parse_toml(_FILE.read_text("utf-8"), where=_FILE),
    NegationPrompts("", dict.fromkeys(SUGAR_CREPE, ("", ()))),
    where=_FILE,
)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """A caption that was read from an answer, or why there is none."""

    caption: str = ""
    reason: str = ""


def read_answer(text: str) -> ReadAnswer:
    """The caption in a model's answer: the only value of a JSON object, or one line in quotes."""
    text = text.strip()
    for brace in re.finditer(r"\{", text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, brace.start())
        except ValueError:
            continue
        if isinstance(value, dict) and len(value) == 1:
            (caption,) = value.values()
            if isinstance(caption, str) and caption.strip():
                return ReadAnswer(" ".join(caption.split()))
        return ReadAnswer(reason=UNREADABLE)
    if _REFUSAL.match(text):
        return ReadAnswer(reason=REFUSED)
    quoted = re.fullmatch(r"[\"“](.+)[\"”]", text)
    return ReadAnswer(" ".join(quoted[1].split())) if quoted else ReadAnswer(reason=UNREADABLE)


def with_head(continued: str) -> str:
    """An answer that was begun with `HEAD`, up to the end of its value; as it is where it has no end."""
    value = re.match(r'(?:[^"\\\n]|\\.)*"', continued)
    return f"{HEAD}{value[0]}}}" if value else HEAD + continued
