"""Parses of captions by `hanta` or `spacy:MODEL`: tokens with Penn tags, lemmas and noun phrases."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

from counterfoil.build.negation.word_lists import Token as Token, WordLists, words
from counterfoil.errors import InputError, MissingExtraError, ModelError

_TOKEN = re.compile(r"\w+(?:['’\-/&]\w+)*['’]?(?=\W|$)|[^\w\s]")
#: Tags of the British National Corpus (C5), which HanTa gives, to those of the Penn Treebank.
_C5 = {
    "NN0": "NN", "NN1": "NN", "NN2": "NNS", "NP0": "NNP", "UNC": "NN", "AJ0": "JJ", "AJC": "JJR",
    "AJS": "JJS", "AT0": "DT", "DT0": "DT", "DTQ": "WDT", "DPS": "PRP$", "CRD": "CD", "ORD": "JJ",
    "PRP": "IN", "PRF": "IN",
    "CJC": "CC", "CJS": "IN", "CJT": "IN", "AV0": "RB", "AVP": "RP", "AVQ": "WRB", "PNP": "PRP", "PNI": "PRP",
    "PNX": "PRP", "PNQ": "WP", "EX0": "EX", "TO0": "TO", "POS": "POS", "XX0": "RB", "VM0": "MD", "ITJ": "UH",
    "PUN": ".", "PUQ": "''", "PUL": "(", "PUR": ")", "ZZ0": "NN",
}  # fmt: skip
_FORMS = {"B": "VBP", "D": "VBD", "G": "VBG", "I": "VB", "N": "VBN", "Z": "VBZ"}
_NOUNS = frozenset({"NN", "NNS", "NNP", "NNPS"})
ADJECTIVES = frozenset({"JJ", "JJR", "JJS"})
FINITE = frozenset({"VBZ", "VBP", "VBD", "MD"})
_DETERMINERS = frozenset({"DT", "PRP$", "WDT", "PDT"})
#: Determiners that are often tagged as something else, or that another reading would take for pronouns.
_ARTICLES = frozenset({"a", "an", "the"})


@dataclass(frozen=True, slots=True)
class NounPhrase:
    """Positions of tokens: determiner from `start`, attributes from `core`, nouns from `noun` to `stop`.

    `end` is where the phrase ends with what follows "of" ("a bowl of fruit"), else `stop`.
    """

    start: int
    core: int
    noun: int
    stop: int
    end: int
    plural: bool


@dataclass(frozen=True)
class Parse:
    """A caption with its tokens; `str(parse)` is the caption without spaces at its ends."""

    tokens: tuple[Token, ...]

    def __str__(self) -> str:
        return "".join(token.text + " " * token.space for token in self.tokens).strip()

    @cached_property
    def phrases(self) -> tuple[NounPhrase, ...]:
        """The noun phrases, from left to right; none overlaps another."""
        tokens, word_lists, phrases, i = self.tokens, words(), list[NounPhrase](), 0
        while i < len(tokens):
            phrase = _phrase(tokens, i, word_lists)
            if phrase is not None:
                phrases.append(phrase)
            i = i + 1 if phrase is None else phrase.stop
        following = {phrase.start: phrase.stop for phrase in phrases}
        for number, phrase in enumerate(phrases):
            # What a measure or a container holds, after "of", is part of its phrase.
            head = tokens[phrase.stop - 1].lemma
            holds = head in word_lists.quantities or head in word_lists.containers
            if holds and self.text(phrase.stop, phrase.stop + 1) == "of" and phrase.stop + 1 in following:
                plural = phrase.plural or head in ("couple", "lot", "pair")
                phrases[number] = replace(phrase, end=following[phrase.stop + 1], plural=plural)
        return tuple(phrases)

    @cached_property
    def within(self) -> frozenset[int]:
        """The positions of determiners and attributes of phrases."""
        return frozenset(i for phrase in self.phrases for i in range(phrase.start, phrase.noun))

    @cached_property
    def lows(self) -> tuple[str, ...]:
        return tuple(token.low for token in self.tokens)

    @cached_property
    def finite(self) -> bool:
        return any(token.tag in FINITE for token in self.tokens)

    @cached_property
    def shouted(self) -> bool:
        return len(self.tokens) > 2 and str(self).isupper()

    def phrase_at(self, start: int) -> NounPhrase | None:
        return next((phrase for phrase in self.phrases if phrase.start == start), None)

    def text(self, start: int, stop: int) -> str:
        """The words from one position to before another, in lower case."""
        return " ".join(self.lows[start:stop])


@dataclass(frozen=True, eq=False)
class Parser:
    """A reader of captions, by name and version; `tag` gives tokens, tags and lemmas of each caption."""

    name: str
    tag: Callable[[Sequence[str]], Iterable[Iterable[tuple[str, str, str]]]]

    def parses(self, captions: Sequence[str]) -> Iterator[Parse]:
        for caption, tagged in zip(captions, self.tag(captions), strict=True):
            i, tokens = 0, []
            for text, tag, lemma in tagged:
                start = caption.find(text, i)
                if start < 0 or caption[i:start].strip():
                    raise InputError("the tokens are not those of the caption", where=caption, given=text)
                i = start + len(text)
                tokens.append(Token(text, tag, lemma.lower(), i < len(caption) and caption[i].isspace()))
            yield Parse(tuple(_mended(tokens)))


def _mended(tokens: list[Token]) -> Iterator[Token]:
    """The tokens with tags that rules depend on set right."""
    word_lists = words()
    for k, token in enumerate(tokens):
        tag, low = token.tag, token.low
        after = tokens[k + 1].tag if k + 1 < len(tokens) else ""
        before = tokens[k - 1] if k else None
        if low in _ARTICLES:
            tag = "DT"
        elif low == "little" and after in _NOUNS | ADJECTIVES:
            tag = "JJ"
        elif (
            tag == "NN"
            and low.endswith("ing")
            and before is not None
            and before.tag in _NOUNS | {"PRP", "RB", "RP"}
            and (after in _NOUNS or after in ("DT", "PRP$"))
            and low not in word_lists.groups_of
        ):
            # "making pizza": what someone does, not a kind of pizza.
            tag = "VBG"
        elif low in word_lists.colours and after in _NOUNS | ADJECTIVES | {"CC", "VBN"} and tag in _NOUNS:
            tag = "JJ"
        elif tag in ("VB", "VBP", "VBZ") and before is not None and before.tag in ("DT", "PRP$", "JJ", "CD"):
            # "the sink": a word that is known as a noun, and stands where one does.
            if low in word_lists.groups_of or token.lemma in word_lists.groups_of:
                tag = "NNS" if tag == "VBZ" else "NN"
        elif tag in _NOUNS and low.endswith("s") and low not in word_lists.homes and token.lemma != low[:-1]:
            # A plural that the tagger does not know: giraffes.
            if low[:-1] in word_lists.homes:
                yield Token(token.text, "NNS", low[:-1], token.space)
                continue
        elif tag in ("VBP", "VB") and before is None and low in word_lists.homes:
            tag = "NN"
        yield token if tag == token.tag else Token(token.text, tag, token.lemma, token.space)


def _phrase(tokens: Sequence[Token], start: int, lists: WordLists) -> NounPhrase | None:
    """The noun phrase that begins there, longest first."""
    count, i = len(tokens), start
    while i < count and tokens[i].tag in _DETERMINERS and i < start + 2:
        i += 1
    core = i
    while i < count:
        tag = tokens[i].tag
        following = tokens[i + 1].tag if i + 1 < count else ""
        if lists.starts_name(tokens, i):
            break
        if (
            tag in ADJECTIVES
            or tag == "CD"
            or (tag == "RB" and following in ADJECTIVES and i > start and tokens[i].low != "next")
        ):
            i += 1
        elif tag in ("VBN", "VBG", "VBD") and following in ADJECTIVES | _NOUNS and i > start:
            if tag != "VBN" and tokens[i - 1].tag not in _DETERMINERS | ADJECTIVES | {"CD"}:
                break
            i += 1
        elif tag in ("CC", ",") and i > core and tokens[i - 1].tag in ADJECTIVES and following in ADJECTIVES:
            i += 1
        else:
            break
    noun = i
    while i < count:
        step = lists.starts_name(tokens, i)
        if step:
            i += step
        elif tokens[i].tag in _NOUNS:
            i += 1
        else:
            break
    if i == noun:
        return None
    head = tokens[i - 1]
    plural = head.tag in ("NNS", "NNPS") or head.low in lists.plurals
    return NounPhrase(start, core, noun, i, i, plural)


def load_parser(name: str = "hanta") -> Parser:
    """The parser of a name: `hanta`, or `spacy:MODEL` with the name or the folder of a pipeline."""
    kind, _, argument = name.partition(":")
    if name == "hanta":
        return hanta_parser()
    if kind == "spacy" and argument:
        return spacy_parser(argument)
    raise InputError("no such parser", given=name, allowed="hanta, spacy:MODEL, spacy:FOLDER")


def hanta_parser() -> Parser:
    """HanTa's English tagger (Wartena, 2019), with the model that its package brings."""
    try:
        from importlib.metadata import version

        from HanTa.HanoverTagger import HanoverTagger
    except ModuleNotFoundError:
        raise MissingExtraError("HanTa", "build") from None
    tagger = HanoverTagger("morphmodel_en.pgz")

    def tagged(caption: str) -> Iterator[tuple[str, str, str]]:
        texts = _TOKEN.findall(caption)
        # The first word is read in lower case, as it would be elsewhere.
        first = texts[0] if texts else ""
        lower = first[1:].islower() or len(first) == 1
        given = [first.lower() if lower else first, *texts[1:]]
        tags = tagger.tag_sent(given, taglevel=1) if texts else []
        for text, (_, lemma, tag) in zip(texts, tags, strict=True):
            # A tag of C5 as one of the Penn Treebank.
            verb = tag[:2] in ("VV", "VB", "VH", "VD")
            penn = _FORMS.get(tag[2:], "VB") if verb else _C5.get(tag.partition("-")[0], "XX")
            yield text, "," if tag.startswith("PUN") and lemma == "," else penn, lemma

    return Parser(f"hanta {version('HanTa')}", partial(map, tagged))


def spacy_parser(model: str) -> Parser:
    """A pipeline of spaCy that gives Penn tags (`token.tag_`); lemmas are its own where it has them."""
    try:
        import spacy
    except ModuleNotFoundError:
        raise MissingExtraError("spacy", "build") from None
    where = f"spacy:{model}"
    try:
        pipeline = spacy.load(model)
    except (OSError, ValueError) as error:
        hint = "python -m spacy download en_core_web_sm, or name a folder; parser hanta needs no model"
        given = " ".join(str(error).split())[:120]
        raise ModelError("no such pipeline of spaCy", where=where, given=given, hint=hint) from None

    def tagged(captions: Sequence[str]) -> Iterator[list[tuple[str, str, str]]]:
        for document in pipeline.pipe(captions):
            yield [(t.text, t.tag_, t.lemma_ or t.text) for t in document if not t.is_space]

    parser = Parser(f"{where} {pipeline.meta.get('version', '')}".strip(), tagged)
    (sample,) = parser.parses(["A dog sits on the grass."])
    if not any(token.tag in _NOUNS for token in sample.tokens):
        raise ModelError("the pipeline gives no tags", where=where, hint="it needs a tagger for English")
    return parser
