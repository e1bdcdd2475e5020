"""Prompts that ask a language model for a negative caption, its answers, and whether they are one."""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher, get_close_matches
from pathlib import Path
from typing import Any

from counterfoil.build.negation.lexicon import Lexicon
from counterfoil.build.negation.rules import SUGAR_CREPE
from counterfoil.build.negation.swaps import is_symmetric
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
    tasks: Mapping[str, str]
    examples: Mapping[str, tuple[tuple[str, str], ...]]

    def turns(self, caption: str, category: str) -> tuple[str, ...]:
        """A conversation up to the question: that about each example with its answer, then the caption's.

        >>> len(PROMPTS.turns("A dog.", "add_att")), PROMPTS.turns("A dog.", "add_att")[1]
        (5, '{"caption": "A train crosses a wooden bridge."}')
        """
        messages = []
        for before, after in self.examples[category]:
            messages += [self._question(before, category), json.dumps({"caption": after}, ensure_ascii=False)]
        return (*messages, self._question(caption, category))

    def _question(self, caption: str, category: str) -> str:
        return self.template.replace("{task}", self.tasks[category]).replace("{caption}", caption)


#: Those that are used where the user gives none.
PROMPTS = NegationPrompts(
    _PROMPT,
    {category: task for category, (task, _) in _TASKS.items()},
    {category: examples for category, (_, examples) in _TASKS.items()},
)


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
    tasks, examples = dict(PROMPTS.tasks), dict(PROMPTS.examples)
    for category, entry in values.items():
        where = f"{path}, {category}"
        if category not in SUGAR_CREPE:
            raise UnknownNameError("category", category, ("template", *SUGAR_CREPE), where=path)
        if not isinstance(entry, dict):
            raise DataError("no table", where=where, given=entry, allowed="task, examples")
        if strange := [key for key in entry if key not in ("task", "examples")]:
            raise UnknownNameError("key", strange[0], ("task", "examples"), where=where)
        task, pairs = entry.get("task", tasks[category]), entry.get("examples", examples[category])
        if not isinstance(task, str):
            raise DataError("no task", where=where, given=task, allowed="a text")
        if not isinstance(pairs, list | tuple) or not all(_is_pair(pair) for pair in pairs):
            raise DataError("no examples", where=where, given=pairs, allowed='[["caption", "negative"], ...]')
        tasks[category], examples[category] = task, tuple((before, after) for before, after in pairs)
    return replace(PROMPTS, template=template, tasks=tasks, examples=examples)


def _is_pair(value: Any) -> bool:
    return isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(v, str) for v in value)


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
    """What was written, with the first letter's case and the final stop of its caption.

    >>> in_form_of("A dog on a mat.", "a cat on a mat"), in_form_of("a dog on a mat", "A cat on a mat.")
    ('A cat on a mat.', 'a cat on a mat')
    >>> in_form_of("a dog watches tv", "TV watches a dog"), in_form_of("A dog.", "Is it a dog?")
    ('TV watches a dog', 'Is it a dog?')
    """
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
    """Why a caption is no negative of another in a category, one of `REASONS`; "" where it may be one.

    A replacement changes one stretch of words, an addition adds words and takes none away, a swap has the
    same words in another order. Words are compared without case, marks, endings and words such as "the", so
    that verbs and pronouns may agree with what was changed and spelling may be mended.

    >>> rejection("A dog on a mat.", "A wet dog on a mat.", "add_att", Lexicon())
    ''
    >>> rejection("A dog on a mat.", "A cat on a rug.", "replace_obj", Lexicon())
    'more than one change'
    >>> rejection("A sofa by a wall.", "A couch by a wall.", "replace_obj", Lexicon())
    'same meaning'
    >>> rejection("Two men watch a dog.", "A dog watches two men.", "swap_obj", Lexicon())
    ''
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
    changes = [
        change
        for change in SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
        if change[0] != "equal"
    ]
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
    if one and two and (two in lexicon.near(one) or lexicon.same(one, two)):
        return "same meaning"
    return ""


def _no_swap(old: Sequence[str], new: Sequence[str]) -> str:
    """Why words are not those of a caption in another order that may say something."""
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
    at = [k for k, (one, two) in enumerate(zip(old, new, strict=False)) if one != two]
    if len(old) == len(new) and len(at) == 2 and at[1] == at[0] + 1 and old[at[0]] == new[at[1]]:
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
    """Whether the lists know a word as a thing or as an attribute alone."""
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
