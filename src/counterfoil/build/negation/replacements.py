"""Rules that replace or add one thing: an object, an attribute, a relation."""

from collections.abc import Iterator, Sequence
from functools import partial

from counterfoil.build.negation.edits import (
    AUXILIARIES,
    VERBS,
    Change,
    ChangePlace,
    Edit,
    attributes,
    changed,
    counts,
    has_article,
    inserted,
    is_fixed,
    name_of,
)
from counterfoil.build.negation.lexicon import EXTRAS, Lexicon
from counterfoil.build.negation.parse import ADJECTIVES, FINITE, NounPhrase, Parse
from counterfoil.build.negation.word_lists import article, plural


def replace_obj(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    for phrase in parse.phrases:
        if counts(parse, phrase, lexicon) or phrase.stop - phrase.noun > 2:
            continue
        nouns = lexicon.nouns_for(name_of(parse, phrase), parse.lows[phrase.noun : phrase.stop])
        options = _fitting(parse, phrase, nouns.options, lexicon)
        if name_of(parse, phrase) == "bed" and phrase.core == phrase.start:
            continue
        if phrase.start and parse.lows[phrase.start - 1] == "and" and phrase.stop - phrase.noun > 1:
            # Of "peanut butter and jelly sandwiches" the last noun is of both.
            continue
        if parse.tokens[phrase.stop - 1].text[:1].isupper() and phrase.stop > 1 and not parse.shouted:
            continue  # A name.
        bare = phrase.start == phrase.core == phrase.noun and not phrase.plural and phrase.start
        if bare and not nouns.mass and not {"a", "an"}.isdisjoint(parse.lows):
            continue  # "Frosted glass": a material, where the noun may be a thing elsewhere.
        if options and not (nouns.mass and (phrase.plural or has_article(parse, phrase))):
            yield ChangePlace(nouns.tier, options, partial(_renamed, parse, phrase, nouns.mass))


_MALE, _FEMALE = frozenset({"man", "boy", "guy", "gentleman"}), frozenset({"woman", "girl", "lady"})
_ALIKE = ({"man", "boy"}, {"woman", "girl"}, {"guy", "boy"}, {"lady", "girl"})
_HERS = {"he": "she", "his": "her", "him": "her", "himself": "herself"}
_HIS = {"she": "he", "her": "his", "hers": "his", "herself": "himself"}


def _renamed(parse: Parse, phrase: NounPhrase, mass: bool, new: str) -> Change:
    """Another noun, and the pronouns of the only man or woman of a caption as it takes them."""
    shown = plural(new) if phrase.plural and not mass else new
    edits = [Edit(phrase.noun, phrase.stop, tuple(shown.split()))]
    old = parse.tokens[phrase.stop - 1].lemma
    table = _HERS if old in _MALE and new in _FEMALE else _HIS if old in _FEMALE and new in _MALE else {}
    alone = sum(token.lemma in _MALE | _FEMALE for token in parse.tokens) <= 1
    for i, token in enumerate(parse.tokens):
        if alone and token.low in table:
            his = "him" if token.low == "her" and token.tag == "PRP" else table[token.low]
            edits.append(Edit(i, i + 1, (his,)))
    return edits, f"{parse.text(phrase.noun, phrase.stop)} > {shown}"


def _fitting(parse: Parse, phrase: NounPhrase, options: Sequence[str], lexicon: Lexicon) -> list[str]:
    """Those of some nouns that the caption does not mention already, and that its pronouns fit."""
    mentioned = {token.lemma for token in parse.tokens} | set(parse.lows)
    name = parse.tokens[phrase.stop - 1].lemma
    attributed = phrase.noun > phrase.core
    # Of several people nothing says whose a pronoun is.
    several = sum(token.lemma in _MALE | _FEMALE for token in parse.tokens) > 1
    owned = several and not {*_HERS, *_HIS}.isdisjoint(parse.lows)
    fixed = _MALE if owned and name in _FEMALE else _FEMALE if owned and name in _MALE else frozenset()
    return [
        word
        for word in options
        if word not in fixed
        and not any(part in mentioned for part in (word, word.split()[-1], *lexicon.near(word)))
        and not (attributed and word.split()[0] == "old")
        # A young woman and a girl may be the same.
        and {word, name} not in _ALIKE
    ]


#: What says that one thing alone is spoken of.
_POSSESSIVES = frozenset({"its", "his", "her", "itself", "himself", "herself"})


def add_obj(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    """One more thing: beside an object of a verb or relation, beside the subject, or at the caption's end."""
    covered = {phrase.start for phrase in parse.phrases}
    for number, phrase in enumerate(parse.phrases):
        nouns = lexicon.nouns_for(name_of(parse, phrase), parse.lows[phrase.noun : phrase.stop])
        following = parse.tokens[phrase.end] if phrase.end < len(parse.tokens) else None
        before = parse.lows[phrase.start - 1] if phrase.start else ""
        if not nouns.group or nouns.mass or counts(parse, phrase, lexicon) or phrase.end != phrase.stop:
            continue
        options = [w for w in _fitting(parse, phrase, nouns.options, lexicon) if w != "skin"]
        if not options or (
            following is not None and following.low in ("and", "or", "of", ",", "that", "who")
        ):
            continue
        if following is not None and following.tag in {*FINITE, "VBN", "POS", "CC"}:
            continue
        if before in ("and", "or", ",", "than", "as", "of", "between", "like") or phrase.stop in covered:
            continue
        if number == 0 and not phrase.plural and (parse.finite or not has_article(parse, phrase)):
            continue
        if not phrase.plural and phrase.core == phrase.start and number:
            continue
        if number == 0 and not _POSSESSIVES.isdisjoint(parse.lows):
            continue
        if not lexicon.is_place(nouns.group):
            more = [plural(new) if phrase.plural else f"{article(new)} {new}" for new in options]
            yield inserted(phrase.stop, [f"and {new}" for new in more])
    end = len(parse.tokens)
    while end and not parse.tokens[end - 1].text[-1:].isalnum():
        end -= 1
    extras = _fitting(parse, NounPhrase(0, 0, 0, max(1, end), end, False), EXTRAS, lexicon)
    if end and extras:
        yield inserted(end, [way.format(f"{article(new)} {new}") for new in extras for way in _NEARBY], 1)


_NEARBY = ("with {} nearby", "next to {}", "with {} in the background", "beside {}")


def replace_att(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    inside = {i for phrase in parse.phrases for i in range(phrase.noun, phrase.stop)}
    heads = {
        i: parse.tokens[phrase.stop - 1].lemma
        for phrase in parse.phrases
        for i in range(phrase.core, phrase.stop)
    }
    left_alone = {
        i
        for phrase in parse.phrases
        for i in range(phrase.core, phrase.noun)
        if is_fixed(parse, phrase, parse.lows[i], lexicon)
    }
    for i, token in enumerate(parse.tokens):
        if i in left_alone:
            continue
        following = parse.lows[i + 1] if i + 1 < len(parse.tokens) else ""
        attribute = token.tag in ADJECTIVES or token.tag in ("CD", "DT", "VBN", "VBG")
        material = i in inside and i + 1 in inside and lexicon.is_attribute(token.low)
        if not (attribute or material) or (i in inside and not material):
            continue
        before = parse.lows[i - 1] if i else ""
        if following in ("of", "up", "fashioned") or before in ("each", "more", "most", *_SHADES):
            continue
        if token.tag in ("VBN", "VBG", "DT", "CD") and i not in parse.within:
            continue
        but = parse.lows if lexicon.lives(heads.get(i, "")) else (*parse.lows, "young", "elderly")
        options = tuple(word for word in lexicon.attributes_for(token.low) if word not in but)
        if token.tag in ("JJR", "JJS") and not token.low.endswith("er"):
            continue
        if options:
            yield changed(parse, i, i + 1, options)
    for phrase in parse.phrases:
        several = phrase.stop - phrase.noun > 1
        if several and parse.text(phrase.noun, phrase.stop) not in lexicon.words.homes:
            word = parse.lows[phrase.noun]
            options = tuple(w for w in lexicon.kinds_for(word) if w not in parse.lows)
            if options:
                yield changed(parse, phrase.noun, phrase.noun + 1, options, 1)


#: Words before a colour that are part of its name.
_SHADES = ("lime", "light", "dark", "bright", "pale", "sky", "navy", "royal", "hot", "neon")


def add_att(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    for phrase in parse.phrases:
        if counts(parse, phrase, lexicon):
            continue
        nouns = lexicon.nouns_for(name_of(parse, phrase), parse.lows[phrase.noun : phrase.stop])
        tier = 0 if nouns.group else 1
        has = [parse.lows[i] for i in attributes(parse, phrase)]
        if not nouns.group and parse.tokens[phrase.stop - 1].lemma in lexicon.words.nameless:
            continue
        options = [
            word
            for word in lexicon.adds_for(nouns.group)
            if word not in parse.lows
            and not is_fixed(parse, phrase, word, lexicon)
            and not any(lexicon.excludes(word, old) for old in has)
        ]
        if options:
            yield ChangePlace(tier + (len(has) > 1), options, partial(_attributed, parse, phrase, lexicon))


def _attributed(parse: Parse, phrase: NounPhrase, lexicon: Lexicon, new: str) -> Change:
    core = phrase.core
    # After numbers, and after attributes that stand before it: a large white dog.
    while core < phrase.noun and (
        parse.tokens[core].tag in ("CD", "RB") or lexicon.order(parse.lows[core]) <= lexicon.order(new)
    ):
        core += 1
    if core and parse.lows[core - 1] in ("and", ",") and core > phrase.core:
        core = phrase.core
    return (Edit(core, core, (new,)),), f"+ {new}"


def replace_rel(parse: Parse, lexicon: Lexicon) -> Iterator[ChangePlace]:
    for start, stop in _relations(parse, lexicon):
        after = parse.phrase_at(stop)
        word = parse.text(start, stop)
        if after is None or not _is_relation(parse, start, word, after, lexicon):
            continue
        options = lexicon.words.relations[word]
        first = parse.tokens[after.start]
        if word == "with" and (first.tag == "CD" or first.low in _COUNTS):
            if not {"it", "them", "side", "middle"}.isdisjoint(parse.lows[stop:]):
                continue
            options = ("far from",)
        head = parse.tokens[after.stop - 1].lemma
        group = lexicon.words.homes.get(head)
        if group is None or group.name not in _ROOMY:
            options = tuple(option for option in options if option != "in")
        if word == "onto" and start and parse.tokens[start - 1].lemma in ("hold", "hang"):
            continue
        if word == "in" and head in lexicon.words.worn:
            options = ("without",)
        yield changed(parse, start, stop, options, 0)
    for i, token in enumerate(parse.tokens):
        lemma, following = token.lemma, parse.phrase_at(i + 1)
        if token.tag not in VERBS or lemma in AUXILIARIES - {"have"} or i in parse.within:
            continue
        before = [phrase for phrase in parse.phrases if phrase.end <= i][-1:]
        ends = [end for phrase in before for end in (phrase.stop, phrase.end)]
        if lemma in _POSTURES and not any(lexicon.lives(parse.tokens[end - 1].lemma) for end in ends):
            continue
        particle = parse.lows[i + 1 : i + 2] == ("up",) and lemma in ("hold", "lift", "pick")
        if particle and parse.phrase_at(i + 2) is not None:
            yield changed(parse, i, i + 2, lexicon.words.with_object[lemma], 0, token.tag)
        elif following is not None:
            options = lexicon.words.with_object.get(lemma, ())
            if lemma == "hold" and parse.tokens[following.stop - 1].lemma in lexicon.words.worn:
                options = (*options, "wear")
            if options:
                yield changed(parse, i, i + 1, options, 0, token.tag)
        elif options := lexicon.words.alone.get(lemma, ()):
            yield changed(parse, i, i + 1, options, 1, token.tag)
    for i, token in enumerate(parse.tokens):
        options = lexicon.words.done.get(token.low, ()) if token.tag == "VBN" else ()
        if options and i not in parse.within:
            yield changed(parse, i, i + 1, options, 2)


#: What things do that people and animals do in another way: flowers that stand in a vase sit in it too.
_POSTURES = frozenset({"sit", "stand", "lie", "lay"})


def _relations(parse: Parse, lexicon: Lexicon) -> Iterator[tuple[int, int]]:
    """The positions of prepositions, and of several words that are one."""
    i = 0
    while i < len(parse.tokens):
        for length in (5, 4, 3, 2, 1):
            if i + length <= len(parse.tokens) and parse.text(i, i + length) in lexicon.words.relations:
                yield i, i + length
                i += length
                break
        else:
            i += 1


#: Participles after which "with" and "in" belong to them, and after which "by" names who did it.
_BELONGS = frozenset({"VBN", "VBD"})
#: Groups of what things are in.
_ROOMY = frozenset(
    {"plates", "cups", "vases", "luggage", "carts", "boats", "vehicles", "rooms", "buildings", "towns"}
    | {"enclosures", "shops", "parks", "fields"}
)
_COUNTS = frozenset({"some", "several", "many", "various", "multiple", "few"})


def _is_relation(parse: Parse, start: int, word: str, after: NounPhrase, lexicon: Lexicon) -> bool:
    head = parse.tokens[after.stop - 1].lemma
    before = parse.tokens[start - 1] if start else None
    following = parse.lows[after.start]
    if head in lexicon.words.places and after.end == after.stop:
        return False
    if word in ("in", "on", "at", "with", "over", "through", "by", "from") and (
        head in lexicon.words.fixed or parse.lows[after.stop - 1] in lexicon.words.fixed
    ):
        return False
    if before is not None:
        if word == "by" and before.tag in _BELONGS:
            return False
        if word == "with" and before.tag in _BELONGS and before.low not in ("seen", "parked", "seated"):
            return False
        if word in ("on", "off", "in", "over") and before.tag in ("RP", "RB") and before.low not in _ADVERBS:
            return False
        if word in ("in", "with") and before.low in ("dressed", "interested", "engaged", "involved"):
            return False
        if before.low in ("made", "because"):
            return False
    if word == "with" and following in ("each", "one", "no", "all"):
        return False
    if word in ("up", "down"):
        group = lexicon.words.groups_of.get(head)
        return group is not None and group.name in ("hills", "streets", "plants", "posts", "openings")
    return True


_ADVERBS = frozenset({
    "together", "alone", "outside", "outdoors", "indoors", "inside", "nearby", "quietly", "close",
    "down", "up",
})  # fmt: skip
