"""Prompts that ask a language model for a negative caption; its answers, read and checked."""

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher

from counterfoil.build.negation.lexicon import Lexicon

#: What to change, per category, with an example; the wording is counterfoil's own.
_TASKS: Mapping[str, tuple[str, str, str]] = {
    "replace_obj": (
        "Exchange exactly one thing, animal or person for another that could be there but is clearly not the "
        "same kind",
        "Two ducks swim past a wooden pier.",
        "Two otters swim past a wooden pier.",
    ),
    "replace_att": (
        "Exchange exactly one property (a colour, size, material, number or state) for one that excludes it",
        "A ripe pear lies beside a knife.",
        "A rotten pear lies beside a knife.",
    ),
    "replace_rel": (
        "Exchange exactly one relation between things (where one is, or what one does to the other) for one "
        "that contradicts it",
        "A lamp stands behind an armchair.",
        "A lamp stands in front of an armchair.",
    ),
    "swap_obj": (
        "Let two things of the caption trade places, and use no word that is not in the caption",
        "A goat watches a farmer from a hill.",
        "A farmer watches a goat from a hill.",
    ),
    "swap_att": (
        "Let the properties of two things of the caption trade places, and use no word that is not in the "
        "caption",
        "A tiny boat passes a huge lighthouse.",
        "A huge boat passes a tiny lighthouse.",
    ),
    "add_obj": (
        "Mention one more thing that the picture does not show, and keep every word of the caption",
        "A guitar leans on a wall.",
        "A guitar and a trumpet lean on a wall.",
    ),
    "add_att": (
        "Give one thing of the caption one more property that it does not have, and keep every word of it",
        "A train crosses a bridge.",
        "A train crosses a wooden bridge.",
    ),
}
_PROMPT = """You write test captions for pictures. Here is one that is true of a picture:

"{caption}"

{task}, so that the new caption is false of that picture. Change nothing else; keep it fluent.
Example: "{before}" becomes "{after}"

ReadAnswer with a JSON object that has the single key "caption" and nothing else."""

#: What models write in place of an answer.
_REFUSAL = re.compile(
    r"^(i'?m sorry|i am sorry|sorry|i can(no|')t|i cannot|as an ai|i am unable|i'm unable)", re.I
)
REASONS = (
    "refused",
    "unreadable answer",
    "a question",
    "no final stop",
    "no change",
    "too long",
    "more than one change",
    "other words than the caption's",
    "same meaning",
)


def prompt(caption: str, category: str) -> str:
    """The prompt for a negative of a caption in one of SugarCrepe's categories."""
    task, before, after = _TASKS[category]
    return _PROMPT.format(caption=caption, task=task, before=before, after=after)


@dataclass(frozen=True, slots=True)
class ReadAnswer:
    """A caption that was read from an answer, or why there is none (`reason` is one of `REASONS`)."""

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
    for found in re.finditer(r"\{", text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, found.start())
        except ValueError:
            continue
        if isinstance(value, dict) and len(value) == 1:
            (caption,) = value.values()
            if isinstance(caption, str) and caption.strip():
                return ReadAnswer(" ".join(caption.split()))
        return ReadAnswer(reason="unreadable answer")
    if _REFUSAL.match(text):
        return ReadAnswer(reason="refused")
    quoted = re.fullmatch(r"[\"“](.+)[\"”]", text)
    return ReadAnswer(" ".join(quoted[1].split())) if quoted else ReadAnswer(reason="unreadable answer")


def rejection(before: str, after: str, category: str, lexicon: Lexicon) -> str:
    """Why a caption is no negative of another in a category, one of `REASONS`; "" where it may be one.

    Words are compared without case, marks and articles. A replacement changes one stretch of words, an
    addition adds one and takes none away, a swap has the same words in another order.

    >>> rejection("A dog on a mat.", "A wet dog on a mat.", "add_att", Lexicon())
    ''
    >>> rejection("A dog on a mat.", "A cat on a rug.", "replace_obj", Lexicon())
    'more than one change'
    >>> rejection("A sofa by a wall.", "A couch by a wall.", "replace_obj", Lexicon())
    'same meaning'
    """
    if after.endswith("?"):
        return "a question"
    if before.endswith((".", "!")) and not after.endswith((".", "!")):
        return "no final stop"
    old, new = _words(before), _words(after)
    if old == new:
        return "no change"
    if len(new) > 1.5 * len(old) + 5:
        return "too long"
    kind = category.partition("_")[0]
    if kind == "swap":
        return "" if Counter(old) == Counter(new) else "other words than the caption's"
    # One agreement may go with a change: "a dog sits" becomes "a dog and a cat sit".
    plain = [_stem(word) for word in old], [_stem(word) for word in new]
    changes = [
        each for each in SequenceMatcher(None, *plain, autojunk=False).get_opcodes() if each[0] != "equal"
    ]
    if len(changes) != 1:
        return "more than one change" if changes else "no change"
    ((what, i, j, k, m),) = changes
    if kind == "add":
        return "" if what == "insert" else "more than one change"
    if j - i > max(1, len(old) // 2) or m - k > 5:
        return "more than one change"
    one, two = " ".join(plain[0][i:j]), " ".join(plain[1][k:m])
    if one and two and (two in lexicon.near(one) or lexicon.same(one, two)):
        return "same meaning"
    return ""


def _words(text: str) -> list[str]:
    return [w for w in re.findall(r"[\w'-]+", text.lower()) if w not in ("a", "an", "the")]


_SAME = {"are": "is", "were": "was", "have": "has"}


def _stem(word: str) -> str:
    """A word without what number changes."""
    if word in _SAME.values() or len(word) < 4:
        return word
    return _SAME.get(word) or (word if word.endswith("ss") else word.removesuffix("s"))
