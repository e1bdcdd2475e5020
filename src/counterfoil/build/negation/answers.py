"""Prompts that ask a language model for a negative caption, and the checks of its answers."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher, get_close_matches
from importlib.resources import files
from pathlib import Path
from typing import Any

from counterfoil.build.negation.edits import is_symmetric
from counterfoil.build.negation.lexicon import Lexicon
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

    def conversation(self, caption: str, category: str) -> tuple[str, ...]:
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


def read_answer(text: str) -> tuple[str, str]:
    """The caption in a model's answer, the only value of a JSON object or one line in quotes; or why not."""
    text = text.strip()
    for brace in re.finditer(r"\{", text):
        try:
            value, _ = json.JSONDecoder().raw_decode(text, brace.start())
        except ValueError:
            continue
        if isinstance(value, dict) and len(value) == 1:
            (caption,) = value.values()
            if isinstance(caption, str) and caption.strip():
                return " ".join(caption.split()), ""
        return "", UNREADABLE
    if _REFUSAL.match(text):
        return "", REFUSED
    quoted = re.fullmatch(r"[\"“](.+)[\"”]", text)
    return (" ".join(quoted[1].split()), "") if quoted else ("", UNREADABLE)


def with_head(continued: str) -> str:
    """An answer that was begun with `HEAD`, up to the end of its value; as it is where it has no end."""
    value = re.match(r'(?:[^"\\\n]|\\.)*"', continued)
    return f"{HEAD}{value[0]}}}" if value else HEAD + continued


REASONS = (
    "a question",
    "no change",
    "too long",
    "about the picture",
    "words taken away",
    "more than one change",
    "other words than the caption's",
    "words out of order",
    "of another category",
    "same meaning",
)

#: Words that may come and go with a change: they say nothing of what a picture shows.
_LIGHT = frozenset(
    {"a", "an", "the", "this", "these", "those", "that", "which", "who", "whose", "there", "of", "and", "it"}
    | {"is", "are", "was", "were", "be", "been", "being", "has", "have", "had", "do", "does"}
)
#: Small words, of which a swap may take others.
_SMALL = frozenset(
    {"in", "on", "at", "to", "with", "by", "for", "from", "into", "onto", "up", "down", "out", "off", "over"}
    | {"under", "behind", "above", "below", "as", "while", "near", "some", "another", "other", "others"}
    | {"each", "one", "couple", "lot", "both", "all"}
)
#: Words that agreement changes, and what they are counted as.
_SAME = {
    "his": "their", "her": "their", "hers": "their", "its": "their", "it's": "their", "theirs": "their",
    "he": "they", "she": "they", "him": "them", "himself": "themselves", "herself": "themselves",
    "itself": "themselves", "men": "man", "women": "woman", "children": "child", "people": "person",
    "feet": "foot", "knives": "knife", "leaves": "leaf", "shelves": "shelf", "an": "a", "2": "two",
    "3": "three", "4": "four", "5": "five", "sat": "sit", "stood": "stand", "ate": "eat", "rode": "ride",
    "held": "hold", "wore": "wear", "lying": "lie", "laying": "lie", "lays": "lie", "lay": "lie",
}  # fmt: skip
#: What speaks of the picture, or of the task, in place of what is in it.
_ABOUT = re.compile(
    r"(an?|the|this)( \w+)? (picture|photo|photograph|image) (of|that|with|shows?|showing|depicts)\b"
    r"|(this|here) is\b|(the |a )?new caption\b|caption:"
)


def in_form_of(before: str, after: str) -> str:
    """What was written, with the first letter's case and the final stop of its caption."""
    if before[:1].isupper():
        after = after[:1].upper() + after[1:]
    elif before[:1].islower() and not after[1:2].isupper():
        after = after[:1].lower() + after[1:]
    if before.endswith((".", "!")) and not after.endswith((".", "!", "?")):
        return after.rstrip(" ,;:-") + before[-1]
    if not before.endswith((".", "!", "?")) and after.endswith(".") and not after.endswith(".."):
        return after[:-1]
    return after


def rejection(before: str, after: str, category: str, lexicon: Lexicon) -> str:
    """Why a caption is no negative of another in a category (one of `REASONS`); "" where it may be one.

    Words are compared without case, marks, endings and words such as "the", so that agreement and spelling
    may change.
    """
    if after.endswith("?") and not before.endswith("?"):
        return "a question"
    plain = _words(before), _words(after)
    if [word for word in plain[0] if word not in _LIGHT] == [word for word in plain[1] if word not in _LIGHT]:
        return "no change"
    if len(plain[1]) > 1.5 * len(plain[0]) + 5:
        return "too long"
    if _ABOUT.match(after.lower()) and not re.search("picture|photo|image", before.lower()):
        return "about the picture"
    old, new = _alike(*plain)
    kind = category.partition("_")[0]
    if kind == "swap":
        return _no_swap(old, new) or _turned(*plain, lexicon)
    opcodes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    changes = [change for change in opcodes if change[0] != "equal"]
    if not changes:
        return "no change"
    if all(what == "delete" for what, *_ in changes):
        return "words taken away"
    if kind == "add":
        inserted = all(what == "insert" for what, *_ in changes)
        return "" if inserted and len(changes) <= 2 else "more than one change"
    ((what, i, j, k, m), *more) = changes
    negated = what == "insert" and set(new[k:m]) <= {"not", "no", "without"}
    if more or (what == "insert" and not negated) or j - i > max(1, len(old) // 2) or m - k > 5:
        return "more than one change"
    one, two = " ".join(old[i:j]), " ".join(new[k:m])
    kinds = _kind(one, lexicon), _kind(two, lexicon)
    if kinds[0] == kinds[1] != "" and category == _ELSEWHERE[kinds[0]]:
        return "of another category"
    if one and two and two in lexicon.near(one):
        return "same meaning"
    return ""


def _no_swap(old: Sequence[str], new: Sequence[str]) -> str:
    gone, come = Counter(old) - Counter(new), Counter(new) - Counter(old)
    large = [word for word in (*gone.elements(), *come.elements()) if word not in _SMALL]
    if len(large) > 1 or gone.total() + come.total() > 4:
        return "other words than the caption's"
    if large and len(new) < len(old) - 1:
        return "words taken away"
    if old == new:
        return "no change"
    one, two = ([word for word in words if word not in other] for words, other in ((old, gone), (new, come)))
    return "other words than the caption's" if one == two else ""


def _turned(old: Sequence[str], new: Sequence[str], lexicon: Lexicon) -> str:
    """Why another order of the same words says nothing else: "a car red", "a dog next to a cat"."""
    positions = [k for k, (one, two) in enumerate(zip(old, new, strict=False)) if one != two]
    if (
        len(old) == len(new)
        and len(positions) == 2
        and positions[1] == positions[0] + 1
        and old[positions[0]] == new[positions[1]]
    ):
        return "words out of order"
    words = [word for word in old if word not in ("a", "an", "the")]
    one, two = ([_stem(w) for w in text if w not in ("a", "an", "the")] for text in (words, new))
    for start in range(1, len(one)):
        for stop in range(start + 1, min(start + 5, len(one))):
            joint = " ".join(words[start:stop])
            if two == one[stop:] + one[start:stop] + one[:start] and is_symmetric(joint, lexicon):
                return "same meaning"
    return ""


#: The category in which no words of a kind are replaced by others of it.
_ELSEWHERE = {"thing": "replace_rel", "attribute": "replace_obj"}


def _kind(word: str, lexicon: Lexicon) -> str:
    attribute = lexicon.kind_of(word) or word in lexicon.words.opposites
    if word in lexicon.words.groups_of:
        return "" if attribute else "thing"
    return "attribute" if attribute else ""


def _words(text: str) -> list[str]:
    """The words of a text in lower case; a possessive ending is a word that says nothing."""
    return [word.removesuffix("'s") for word in re.findall(r"[\w'-]+", text.lower().replace("’", "'"))]


def _alike(old: Sequence[str], new: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that say something, as stems; what was one word or two, or misspelt, the same in both."""
    old, new = _joined(old, set(new)), _joined(new, set(old))
    stems = [[_stem(word) for word in words if word not in _LIGHT] for words in (old, new)]
    unknown = [word for word in stems[0] if word not in stems[1]]
    spelt = {}
    for word in stems[1]:
        if word not in stems[0] and len(word) > 3:
            near = get_close_matches(word, unknown, n=1, cutoff=0.8)
            if near and near[0][0] == word[0] and abs(len(near[0]) - len(word)) < 2:
                spelt[word] = near[0]
    return stems[0], [spelt.get(word, word) for word in stems[1]]


def _joined(words: Sequence[str], others: set[str]) -> list[str]:
    """Words, two of them as one where the other text writes them so."""
    joined: list[str] = []
    for word in words:
        if joined and (joined[-1] + word in others or f"{joined[-1]}-{word}" in others):
            joined[-1] += word
        else:
            joined.append(word.replace("-", ""))
    return joined


def _stem(word: str) -> str:
    """A word without the endings of number, person and tense, so far as forms of one word share the rest."""
    word = _SAME.get(word, word)
    if len(word) < 4 or word.endswith("ss"):
        return word
    for ending, place in (("ies", "y"), ("ing", ""), ("es", ""), ("ed", ""), ("s", "")):
        if word.endswith(ending) and len(word) - len(ending) > 2:
            word = word.removesuffix(ending) + place
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word.removesuffix("e")
