"""Prompts that ask a language model for a negative caption, and its answers, read."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.build.negation.rules import SUGAR_CREPE
from counterfoil.errors import DataError, UnknownNameError
from counterfoil.inputs.files import read_toml

#: What to change, per category, with examples; the wording is counterfoil's own.
_TASKS: Mapping[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "replace_obj": (
        "Exchange exactly one thing, animal or person for another that could be there but is clearly not the "
        "same kind",
        (
            ("Two ducks swim past a wooden pier.", "Two otters swim past a wooden pier."),
            ("A nurse reads in a waiting room.", "A clown reads in a waiting room."),
        ),
    ),
    "replace_att": (
        "Exchange exactly one property (a colour, size, material, number or state) for one that excludes it",
        (
            ("A ripe pear lies beside a knife.", "A rotten pear lies beside a knife."),
            ("Three kites above a green hill.", "Five kites above a green hill."),
        ),
    ),
    "replace_rel": (
        "Exchange exactly one relation between things (where one is, or what one does to the other) for one "
        "that contradicts it",
        (
            ("A lamp stands behind an armchair.", "A lamp stands in front of an armchair."),
            ("A boy pushes a cart up the road.", "A boy pulls a cart up the road."),
        ),
    ),
    "swap_obj": (
        "Let two things of the caption trade places, and use no word that is not in the caption",
        (
            ("A goat watches a farmer from a hill.", "A farmer watches a goat from a hill."),
            ("A book lies on a towel.", "A towel lies on a book."),
        ),
    ),
    "swap_att": (
        "Let the properties of two things of the caption trade places, and use no word that is not in the "
        "caption",
        (
            ("A tiny boat passes a huge lighthouse.", "A huge boat passes a tiny lighthouse."),
            ("A red cup on a white shelf.", "A white cup on a red shelf."),
        ),
    ),
    "add_obj": (
        "Mention one more thing that the picture does not show, and keep every word of the caption",
        (
            ("A guitar leans on a wall.", "A guitar and a trumpet lean on a wall."),
            ("A cat sleeps in a basket.", "A cat sleeps in a basket next to a shoe."),
        ),
    ),
    "add_att": (
        "Give one thing of the caption one more property that it does not have, and keep every word of it",
        (
            ("A train crosses a bridge.", "A train crosses a wooden bridge."),
            ("Two horses on a beach.", "Two spotted horses on a beach."),
        ),
    ),
}
_PROMPT = """Here is a caption that is true of a picture:

"{caption}"

{task}, so that the new caption is false of that picture. Change nothing else; keep it fluent.
Answer with a JSON object that has the single key "caption" and nothing else."""

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
        """A conversation up to the question: that about each example with its answer, then the caption's.

        >>> len(PROMPTS.turns("A dog.", "add_att")), PROMPTS.turns("A dog.", "add_att")[1]
        (5, '{"caption": "A train crosses a wooden bridge."}')
        """
        messages = []
        for before, after in self.tasks[category][1]:
            messages += [self._question(before, category), json.dumps({"caption": after}, ensure_ascii=False)]
        return (*messages, self._question(caption, category))

    def _question(self, caption: str, category: str) -> str:
        return self.template.replace("{task}", self.tasks[category][0]).replace("{caption}", caption)


#: Those that are used where the user gives none.
PROMPTS = NegationPrompts(_PROMPT, _TASKS)


def read_prompts(path: Path | str) -> NegationPrompts:
    """Prompts of one's own, a TOML file: `template`, and a table per category with `task` and `examples`.

    Examples are pairs of a caption and its negative; `examples = []` gives none. What the file leaves out is
    as in `PROMPTS`. Raises `DataError` for a template without {caption} and for values of another kind, and
    `UnknownNameError` for other keys.
    """
    values = read_toml(path)
    template = values.pop("template", PROMPTS.template)
    if not isinstance(template, str) or "{caption}" not in template:
        raise DataError("no template", where=path, given=template, allowed="a text with {caption}")
    tasks = dict(PROMPTS.tasks)
    for category, entry in values.items():
        where = f"{path}, {category}"
        if category not in SUGAR_CREPE:
            raise UnknownNameError("category", category, ("template", *SUGAR_CREPE), where=path)
        if not isinstance(entry, dict):
            raise DataError("no table", where=where, given=entry, allowed="task, examples")
        if strange := [key for key in entry if key not in ("task", "examples")]:
            raise UnknownNameError("key", strange[0], ("task", "examples"), where=where)
        task, pairs = (
            entry.get(key, usual) for key, usual in zip(("task", "examples"), tasks[category], strict=True)
        )
        if not isinstance(task, str):
            raise DataError("no task", where=where, given=task, allowed="a text")
        listed = isinstance(pairs, list | tuple) and all(isinstance(pair, list | tuple) for pair in pairs)
        if not listed or any(len(pair) != 2 or not all(isinstance(v, str) for v in pair) for pair in pairs):
            raise DataError("no examples", where=where, given=pairs, allowed='[["caption", "negative"], ...]')
        tasks[category] = task, tuple((before, after) for before, after in pairs)
    return NegationPrompts(template, tasks)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """A caption that was read from an answer, or why there is none."""

    caption: str = ""
    reason: str = ""


def read_answer(text: str) -> ReadAnswer:
    """The caption in a model's answer: the value of the only key of a JSON object, wherever it stands.

    An answer of one line in quotes is a caption too.

    >>> read_answer('Sure! ```json {"caption": "A cat."} ```').caption, read_answer('"A cat."').caption
    ('A cat.', 'A cat.')
    >>> read_answer("I'm sorry, but no.").reason, read_answer("{}").reason
    ('refused', 'unreadable answer')
    """
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
    """An answer that was begun with `HEAD`, up to the end of its value; as it is where it has no end.

    >>> with_head('A cat."}, {"caption": "A co')
    '{"caption": "A cat."}'
    """
    value = re.match(r'(?:[^"\\\n]|\\.)*"', continued)
    return f"{HEAD}{value[0]}}}" if value else HEAD + continued
