"""Captions cut into the tokens that the COCO tool kit scores, without Java.

BLEU, ROUGE and CIDEr compare tokens, so published numbers hold for one tokenizer only: Stanford CoreNLP
3.4.1's (`-preserveLines -lowerCase`), after which marks of punctuation are dropped.

A rule is (what is done with what it matches, the pattern of a token, what must follow). At any place the rule
that matches the most, counting what must follow, wins; of equals the first. Where a rule has alternatives
that begin alike the longer comes first, so that the greedy match of `re` is the longest.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, lru_cache, partial
from types import SimpleNamespace

from counterfoil.errors import InputError

BLANK = " \t\u00a0\u2000-\u200a\u3000"
BREAK = "\n\r\u2028\u2029\x0b\x0c\x85"

#: Marks and letters that the tokenizer takes for letters although `str.isalpha` may not.
_MORE_LETTERS = (
    "\u00ad\u0237-\u024f\u02c2-\u02c5\u02d2-\u02df\u02e5-\u02ff\u0300-\u037d\u0384\u0385\u03cf\u03f6"
    "\u03fc-\u03ff\u0483-\u0487\u04cf\u04f6-\u04ff\u0510-\u0525\u055a-\u055f\u0591-\u05bd\u05bf\u05c1\u05c2"
    "\u05c4\u05c5\u05c7\u0615-\u061a\u063b-\u063f\u064b-\u065e\u0670\u06d6-\u06ef\u06fa-\u06ff\u070f\u0711"
    "\u0730-\u077f\u07a6-\u07b1\u07ca-\u07f5\u07fa\u0900-\u0903\u093c\u093e-\u094e\u0951-\u0955\u0962\u0963"
    "\u0981-\u0983\u09bc-\u09c4\u09c7\u09c8\u09cb-\u09cd\u09d7\u09e2\u09e3\u0a01-\u0a03\u0a3c\u0a3e-\u0a4f"
    "\u0a81-\u0a83\u0abc-\u0acf\u0b82\u0bbe-\u0bc2\u0bc6-\u0bc8\u0bca-\u0bcd\u0c01-\u0c03\u0c3e-\u0c56"
    "\u0d3e-\u0d44\u0d46-\u0d48\u0e30-\u0e3a\u0e47-\u0e4e\u0eb1-\u0ebc\u0ec8-\u0ecd"
)

#: Symbols that are tokens of their own.
_SYMBOL = (
    "[+%&~\\^|\\\\\u00a6-\u00a9\u00ac\u00ae-\u00ba\u00d7\u00f7\u0387\u05be\u05c0\u05c3\u05c6\u05f3\u05f4"
    "\u0600-\u0603\u0606-\u060a\u060c\u0614\u061b\u061e\u066a\u066d\u0703-\u070d\u07f6-\u07f8\u0964\u0965"
    "\u0e4f\u1fbd\u2016\u2017\u2020-\u2023\u2030-\u2038\u203b\u203e-\u2042\u2044\u207a-\u207f\u208a-\u208e"
    "\u2100-\u214f\u2190-\u2bff\u3012\u30fb\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65]"
)

#: A capital in brackets is asked for; all other letters may be large or small.
_USUALLY_BEFORE_SMALL = (
    "jan feb mar apr jun jul aug sep sept oct nov dec mon tue tues wed thu thurs fri "
    "ala ariz [A]z [A]rk calif colo conn ct dak [D]el fla ga [I]ll ind kans? ky [L]a [M]ass md mich minn "
    "[M]iss mo mont neb nev okla [O]re [P]a penn tenn [T]ex va vt [W]ash wisc? wyo "
    "inc cos? corp pp?t[ye]s? ltd plc rt bancorp bhd assn univ intl sys tel est ext sq "
    "jr sr bros ed[.]d ph[.]d esq blvd rd bldg etc al seq"
)
_USUALLY_BEFORE_CAPITAL = (
    "mr mrs ms [M]iss drs? profs? sens? reps? attys? lt col gen messrs govs? adm rev maj sgt cpl pvt capt "
    "ste? ave pres lieut rt hon brig co?mdr pfc spc supts? det mt ft adj adv asst assoc ens insp mlle mme "
    "msgr sfc vs [v] alex wm jos cie cf treas ph invt elec natl m[ft]g dept"
)
_BEFORE_NUMBERS = "ca figs? prop nos? art bldg pp op"
_OPENERS = (
    "[A]bout [A]ccording [A]dditionally [A]fter [A]n [A] [A]s [A]t [B]ut [E]arlier [H]e [H]er [H]ere "
    "[H]owever [I]f [I]n [I]t [L]ast [M]any [M]ore [M]r[.] [M]s[.] [N]ow [O]nce [O]ne [O]ther [O]ur [S]he "
    "[S]ince [S]o [S]ome [S]uch [T]hat [T]he [T]hen [T]here [T]hese [T]hey [T]his [W]e [W]hen [W]hile "
    "[W]hat [Y]et [Y]ou"
)
_FILES = (
    "bat bmp bz2 c class cgi cpp dll docx? exe gif gz h html? jar java jpe?g mov mp[34g] pdf php pl png ppt "
    "ps py sql tar txt wav x xml zip 3gp wm[va] avi flv"
)


def caseless(pattern: str) -> str:
    """The pattern with plain letters large or small; what stands in brackets is meant as it is."""
    spread, inside = [], False
    for sign in pattern:
        inside = sign == "[" or (inside and sign != "]")
        spread.append(f"[{sign}{sign.upper()}]" if "a" <= sign <= "z" and not inside else sign)
    return "".join(spread)


def _any_of(words: str) -> str:
    return "(?:" + "|".join(map(caseless, words.split())) + ")"


def _characters(test: Callable[[str], bool]) -> str:
    """All characters of the basic plane that pass, as the inside of a class."""
    codes = [c for c in range(0x10000) if not 0xD800 <= c < 0xE000 and test(chr(c))]
    starts = [c for before, c in zip([-2, *codes], codes, strict=False) if c != before + 1]
    ends = [c for c, after in zip(codes, [*codes[1:], 0x20000], strict=True) if after != c + 1]
    return "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in zip(starts, ends, strict=True))


def rules() -> list[tuple[str, str, str]]:
    """(action, token, what follows), first things first."""
    p = _patterns_of_names(_patterns_of_words())
    return [
        *_rules_of_words(p),
        ("phone", p.phone, ""),
        ("quote", f'"|{caseless("&quot;")}', ""),
        ("drop", "\x7f", ""),
        ("less", f"<|{caseless('&lt;')}", ""),
        ("more", f">|{caseless('&gt;')}", ""),
        ("bracket", "[<>]?[:;=][-o*']?[()DPdpO\\\\{@|\\[\\]]", "[^A-Za-z0-9]"),
        ("bracket", p.asian, ""),
        ("bracket", "[][(){}]", ""),
        ("dashes", "-+", ""),
        ("dots", "\\.{3,5}|(?:\\.[ \u00a0]){2,4}\\.|[\x85\u2026]", ""),
        ("keep", "@+|\\#+|_+|\\*+|(?:\\\\\\*){1,3}|[?!]+|<<|>>|=|/", ""),
        ("keep", p.after_point, ""),
        ("keep", "[.\u00a1\u00bf\u037e\u0589\u061f\u06d4\u0700-\u0702\u07fa\u3002]", ""),
        ("soft", p.hyphened + "\\.", p.after_point),
        ("soft", p.hyphened, ""),
        ("keep", p.compound + "\\.", p.after_point),
        ("keep", p.compound, ""),
        ("ampersand", p.joined + "\\.", p.after_point),
        ("ampersand", p.joined, ""),
        ("quote", "'", "[A-Za-z][^ \t\n\r\u00a0]"),
        ("quote", p.ending, ""),
        ("quote", f"''|[`\u2018-\u201f\x91-\x94\u2039\u203a\u00ab\u00bb]{{1,2}}|{p.apostrophe}", ""),
        ("keep", _SYMBOL, ""),
        ("drop", f"\0|{p.blank}+|[{BREAK}]|[\u200b\u200e\u200f\ufeff]|{caseless('&nbsp;')}", ""),
    ]


def _patterns_of_words() -> SimpleNamespace:
    """Patterns of letters, words, numbers and abbreviations."""
    alpha, decimal = _characters(str.isalpha), _characters(str.isdecimal)
    blank, white = f"[{BLANK}]", f"[{BLANK}{BREAK}]"
    digit, plain = f"[{decimal}]", f"[{alpha}{decimal}]"
    accented = f"&[aeiouAEIOU]{_any_of('acute grave uml')};"
    letter = f"(?:[{alpha}{_MORE_LETTERS}]|{accented})"
    lettery = f"(?:[{alpha}{_MORE_LETTERS}{decimal}]|{accented})"
    word = f"{letter}{lettery}*(?:[.!?]{letter}{lettery}*)*"

    apostrophe = f"(?:['\x92\u2019]|{caseless('&apos;')})"
    any_apostrophe = f"(?:['`\x91\x92\u2018\u2019\u201b]|{caseless('&apos;')})"
    ending = f"{apostrophe}(?:[msdMSD]|{_any_of('re ve ll')})"
    with_apostrophe = [
        f"{apostrophe}[nN]{apostrophe}?",
        f"(?:[lLdDjJ]|{_any_of('dunkin somethin ol')}){apostrophe}",
        f"{apostrophe}(?:[2-9]0[sS]|{_any_of('em till? cause')})",
        f"[A-HJ-XZn]{any_apostrophe}[{alpha}]{{2,}}",
        f"[{alpha}]+[aeiouyAEIOUY]{any_apostrophe}[aeiouA-Z][{alpha}]*",
        f"[oO]{any_apostrophe}[oO]",
        _any_of("cont'd[.]? nor'easter c'mon e'er s'mores ev'ry li'l nat'l"),
    ]
    name = "[A-Za-z][A-Za-z0-9_:.-]*"
    quoted = "['\"][^\r\n'\"]*['\"]"
    attribute = f"(?:{name}(?:[ ]*=[ ]*{quoted})?|{quoted}|/)"
    markup = f"<(?:[!?][A-Za-z-][^>\r\n]*|/?{name}(?:[ ]+{attribute})*[ ]*/?[ ]*)>"

    number = f"[-+]?(?:{digit}*(?:[.:,\u00ad\u066b\u066c]{digit}+)+|{digit}+)"
    fraction = f"(?:{digit}{{1,4}}[- \u00a0])?{digit}{{1,4}}(?:\\\\?/|\u2044){digit}{{1,4}}"
    area = "\\([0-9]{2,3}\\)[ \u00a0]?|(?:\\+\\+?)?(?:[0-9]{2,4}[- \u00a0])?[0-9]{2,4}[- \u00a0]"
    dotted = "(?:(?:\\+\\+?)?[0-9]{2,4}\\.)?[0-9]{2,4}\\.[0-9]{3,4}\\.[0-9]{3,5}"
    phone = f"(?:(?:{area})[0-9]{{3,4}}[- \u00a0]?[0-9]{{3,5}}|{dotted})"

    nations = _any_of("(?:canada|sino|korean|eu|japan|non)-u[.]s u[.]s[.]-(?:u[.]k|u[.]s[.]s[.]r)")
    initials = f"(?:{nations}|[A-Za-z](?:\\.[A-Za-z])*)"
    acronym = f"(?:{nations}|[A-Za-z](?:\\.[A-Za-z])+)"
    before_small = _any_of(_USUALLY_BEFORE_SMALL) + "\\."
    before_capital = f"(?:{_any_of(_USUALLY_BEFORE_CAPITAL)}|{initials})"
    return SimpleNamespace(**locals())


def _patterns_of_names(p: SimpleNamespace) -> SimpleNamespace:
    """Those patterns, and patterns of compounds, files, addresses and faces."""
    particle = f"(?:[dDoOlL]{p.any_apostrophe}{p.plain})?"
    compound = f"{particle}{p.plain}+(?:[-_\u058a\u2010\u2011]{particle}{p.plain}+)*"
    hyphened = f"[A-Za-z0-9][A-Za-z0-9.,\u00ad]*(?:-(?:{p.acronym}\\.|[A-Za-z0-9\u00ad]+))+"
    part = "[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}"
    joined = f"[A-Z]+(?:(?:[+&]|{caseless('&amp;')})[A-Z]+)+"
    file = f"{p.lettery}+(?:\\.{p.lettery}+)*\\.{_any_of(_FILES)}"
    ampersand = f"(?:&|{caseless('&amp;')})"
    special = "|".join(
        [
            f"-{_any_of('rrb lrb rcb lcb rsb lsb')}-",
            _any_of("c[.]d[.]s pro- anti-"),
            f"[sS]{ampersand}(?:[pP]-500|[lL][sS])",
            f"{caseless('cap')}{p.apostrophe}[nN]|[cC]{p.apostrophe}{caseless('est')}",
        ]
    )

    inside = '[^ \t\n\x0c\r"<>|()]+[^ \t\n\x0c\r"<>|.!?(){},-]'
    address = f'{caseless("https?")}://[^ \t\n\x0c\r"<>|(){{}}]+[^ \t\n\x0c\r"<>|.!?(){{}},-]'
    site = f'{caseless("www")}\\.(?:[^ \t\n\x0c\r"<>|.!?(){{}},]+\\.)+[a-zA-Z]{{2,4}}'
    domains = f"(?:[^ \t\n\x0c\r\"`'<>|.!?(){{}},-_$]+\\.)+{_any_of('com net org edu')}"
    host = '[^ \t\n\x0c\r"<>|(){}.\u00a0]+'
    mail = (
        f'(?:<|{caseless("&lt;")})?[a-zA-Z0-9][^ \t\n\x0c\r"<>|()\u00a0{{}}]*@(?:{host}\\.)*{host}'
        f"(?:>|{caseless('&gt;')})?"
    )
    eyes = "[-\\^x=~<>']"
    asian = (
        f"[\\^x=~<>]\\.\\[\\^x=~<>\\]|{eyes}_{eyes}|\\({eyes}[_.]?{eyes}\\)|\\([\\^x=~<>']-[\\^x=~<>'`]\\)"
    )
    after_point = "[,;:\u3001]"
    return SimpleNamespace(**{**vars(p), **locals()})


def _rules_of_words(p: SimpleNamespace) -> list[tuple[str, str, str]]:
    return [
        ("keep", f"{caseless('c[+][+]')}|[cCfF]\\#", ""),
        ("split 3", _any_of("cannot 'twas"), ""),
        ("split 2", _any_of("gonna gotta lemme gimme wanna 'tis"), ""),
        ("join", p.markup, ""),
        ("dash", f"&{_any_of('md mdash ndash')};|[\x96\x97\u2013-\u2015]", ""),
        ("ampersand", caseless("&amp;"), ""),
        ("keep", f"&(?:{_any_of('ht tl ur lr qc ql qr odq cdq')}|\\#[0-9]+);", ""),
        ("soft", p.word, p.ending),
        ("soft", "[A-Za-z\u00ad]*[A-MO-Za-mo-z]\u00ad*", f"[nN]{p.any_apostrophe}[tT]"),
        ("soft", p.word, ""),
        *(("keep", pattern, "") for pattern in p.with_apostrophe),
        ("keep", f"[yY]{p.apostrophe}", f"[{p.alpha}]"),
        ("keep", p.address, ""),
        ("keep", p.site, ""),
        ("keep", f"{p.site}/{p.inside}", ""),
        ("keep", f"{p.domains}(?:/{p.inside})?", ""),
        ("keep", p.mail, ""),
        ("keep", f"@[a-zA-Z_][a-zA-Z_0-9]*|\\#{p.letter}+", ""),
        ("quote", p.ending, "[^A-Za-z]"),
        ("quote", f"[nN]{p.any_apostrophe}[tT]", "[^A-Za-z]"),
        ("keep", f"{p.digit}{{1,2}}[-/]{p.digit}{{1,2}}[-/]{p.digit}{{2,4}}", ""),
        ("soft", p.number, ""),
        (
            "keep",
            "[\u207a\u207b\u208a\u208b]?(?:[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+|[\u2080-\u2089]+)",
            "",
        ),
        ("join", p.fraction, ""),
        ("map", "[\u00bc-\u00be\u2153-\u215e]", ""),
        ("ampersand", p.special, ""),
        ("keep", f"{p.part}(?:\\\\?/{p.part}){{1,2}}", ""),
        ("keep", "[A-Z]*\\$|\\#", ""),
        ("map", "[\u00a2-\u00a5\x80\u20a0\u20a4\u20ac\u060b\u0e3f\uffe0\uffe1\uffe5\uffe6]", ""),
        ("acronym", p.initials + "\\.", f"{p.white}+(?:{_any_of(_OPENERS)}|{p.markup}){p.white}"),
        ("keep", _any_of(_BEFORE_NUMBERS) + "\\.", f"{p.white}?{p.digit}"),
        ("keep", "(?:[pP][tT][eyEY]|[cC][oO])\\.", p.blank + _any_of("ltd lim")),
        ("again", p.before_small, f"{p.white}(?:{p.white}|[A-Z]|{p.markup})"),
        ("keep", p.before_small, "[\\s\\S]{2}"),
        ("again", p.before_small, ""),
        ("keep", p.before_capital + "\\.", ""),
        ("keep", p.before_capital, p.blank),
        ("keep", p.acronym, p.white),
        ("keep", f"{p.apostrophe}[0-9][0-9]", p.white),
        ("keep", p.file, f"(?:{p.white}|[.?!,])"),
        ("soft", p.word + "\\.", p.after_point),
    ]


#: What the tool kit drops. It means to drop round and curly brackets too, but looks for "-LRB-" where lower
#: case has already made "-lrb-" of it, so brackets stay.
PUNCTUATION = frozenset(["''", "'", "``", "`", ".", "?", "!", ",", ":", "-", "--", "...", ";"])

#: Where the cut of a word can depend on the next: marks of markup, a number after a number or abbreviation,
#: initials before a capital, dots with blanks between them, and blanks of odd kinds.
_DEPENDS = re.compile(
    r"<[A-Za-z/!?][^>]*[ \t][^>]*>|[^\S \t]|[\d)][ \t]+\d|[A-Za-z.]\.[ \t]+[\d.]"
    r"|(?<![A-Za-z])[A-Za-z]\.[ \t]+[A-Z<]|\.[ \t]+[Ll][TtIi]"
)
#: Words of nothing but letters that are more than one token.
_SPLIT = frozenset(["cannot", "gonna", "gotta", "lemme", "gimme", "wanna"])

_BRACKETS = {"(": "-LRB-", ")": "-RRB-", "[": "-LSB-", "]": "-RSB-", "{": "-LCB-", "}": "-RCB-"}
_FRACTIONS = {"\u00bc": "1/4", "\u00bd": "1/2", "\u00be": "3/4", "\u2153": "1/3", "\u2154": "2/3"}
_MONEY = {"\u00a2": "cents", "\u00a3": "#", "\x80": "$", "\u00a4": "$", "\u20a0": "$", "\u20ac": "$"}
_MAPPED = _BRACKETS | _FRACTIONS | _MONEY
_QUOTES = (
    (re.compile("&apos;", re.IGNORECASE), "'"),
    (re.compile('"|&quot;', re.IGNORECASE), "''"),
    (re.compile("[\x91\u2018\u201b\u2039]"), "`"),
    (re.compile("[\x92\u2019\u203a]"), "'"),
    (re.compile("[\x93\u201c\u00ab]"), "``"),
    (re.compile("[\x94\u201d\u00bb]"), "''"),
)


def _quote(token: str) -> str:
    for pattern, plain in _QUOTES:
        token = pattern.sub(plain, token)
    return token


def _parentheses(token: str) -> str:
    return token.replace("(", "-LRB-").replace(")", "-RRB-")


#: What becomes of a token's letters, by the action of its rule; actions not named leave them alone.
_WRITTEN: Mapping[str, Callable[[str], str]] = {
    "join": lambda token: token.replace(" ", "\u00a0"),
    "phone": lambda token: _parentheses(token.replace(" ", "\u00a0")),
    "dash": lambda token: "--",
    "dashes": lambda token: "--" if 3 <= len(token) <= 4 else token,
    "dots": lambda token: "...",
    "less": lambda token: "<",
    "more": lambda token: ">",
    "ampersand": partial(re.compile("&amp;", re.IGNORECASE).sub, "&"),
    "soft": lambda token: token.replace("\u00ad", "") or "-",
    "map": lambda token: _MAPPED.get(token, token),
    "bracket": lambda token: _MAPPED.get(token) or _parentheses(token),
    "quote": _quote,
}


@cache
def _scanner() -> tuple[re.Pattern[str], tuple[str, ...]]:
    """A pattern that tries every rule at one place, with two groups for each, and the rules' actions.

    The first group of a rule is the token, the second ends where what must follow ends: `re` cannot ask for
    the longest of alternatives, so all look ahead from one place and the caller compares.
    """
    listed = rules()
    tries = (f"(?:(?=({token})(?:{follows})())|)" for _, token, follows in listed)
    return re.compile("".join(tries)), tuple(action for action, _, _ in listed)


def _scan(text: str, after: str) -> list[str]:
    """All tokens of a text that `after` follows, punctuation too, letters as they are."""
    pattern, actions = _scanner()
    place, length, tokens = 0, len(text), []
    text += after
    while place < length:
        match = pattern.match(text, place)
        spans = match.regs[1:] if match else ()
        farthest, rule = max((spans[2 * i + 1][1], -i) for i in range(len(actions)))
        if farthest < 0:
            place += 1  # a character that no rule knows is dropped, and parts what stands around it
            continue
        action, (start, place) = actions[-rule], spans[-2 * rule]
        token = text[start:place]
        if action.startswith("split"):
            back = int(action[-1])
            token, place = token[:-back], place - back
        elif action in ("again", "acronym"):
            place -= 1  # the point ends the sentence as well, and comes again
            token = token[:-1] if action == "acronym" and len(token) == 2 else token
        if action != "drop":
            tokens.append(_WRITTEN[action](token) if action in _WRITTEN else token)
    return tokens


def _unpunctuated(tokens: Sequence[str]) -> str:
    return " ".join(token for token in map(str.lower, tokens) if token not in PUNCTUATION)


@lru_cache(maxsize=1 << 16)
def _word(word: str) -> str:
    """The tokens of what stands between two blanks, where they do not depend on what stands around it."""
    plain = word.removesuffix(",").lower()
    if plain.isascii() and plain.isalpha() and plain not in _SPLIT:
        return plain
    return _unpunctuated(_scan(word, " x q"))


def tokenize(text: str) -> str:
    """The tokens of a caption, joined by one blank; a caption of nothing but punctuation gives "".

    >>> tokenize("A man's dog can't jump (high), at 5 p.m. on the U.S. coast...")
    "a man 's dog ca n't jump -lrb- high -rrb- at 5 p.m. on the u.s. coast"

    The same as the tool kit's for a caption given on its own followed by a line that begins with a small
    letter. Known differences:

    * In the tool kit the end of a caption can depend on the start of the next: "plan V." gives "v" before
      "The dog" and "v." before "a dog". Here it depends on itself alone: "v.".
    * Other line breaks than "\\n" split a caption in the tool kit; here they are blanks.
    * Letters that Unicode gained after its version 6 are dropped there and kept here.
    * A capital sigma beside a digit is one or the other small sigma; an address of a single emoji is none.
    """
    text = text.translate(_LINE_BREAKS)
    if _DEPENDS.search(text):
        return _unpunctuated(_scan(text, "\nx q"))
    return " ".join(filter(None, map(_word, text.split())))


_LINE_BREAKS = {ord(sign): " " for sign in "\n\r\u2028\u2029\x0b\x0c"}


def tokenize_all(texts: Sequence[object]) -> list[str]:
    """The tokens of each caption (as `tokenize`), equal captions being looked at once.

    Raises `InputError` naming the first caption that is not a string.

    >>> tokenize_all(["A dog.", "Two dogs!", "A dog."])
    ['a dog', 'two dogs', 'a dog']
    """
    cached: dict[object, str] = {}
    for row, text in enumerate(texts):
        if not isinstance(text, str):
            problem = "a caption is not a text"
            raise InputError(problem, where=f"caption {row}", given=repr(text), allowed="a string")
        if text not in cached:
            cached[text] = tokenize(text)
    return [cached[text] for text in texts]
