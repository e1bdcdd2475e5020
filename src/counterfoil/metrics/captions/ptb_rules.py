"""The rules by which the Penn Treebank tokenizer of the COCO tool kit cuts text, in their order.

A rule is (what is done with what it matches, the pattern of a token, what must follow without being part of
it). At any place the rule that matches the most, counting what must follow, wins; of equals the first. Where
a rule has alternatives that begin alike the longer comes first, so that the greedy match of `re` is the
longest. The rules describe what the tokenizer inside `pycocoevalcap` (Stanford CoreNLP 3.4.1) was seen to do;
names of months, titles and states count as abbreviations, some only when written with a capital.
"""

from collections.abc import Callable

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

    particle = f"(?:[dDoOlL]{any_apostrophe}{plain})?"
    compound = f"{particle}{plain}+(?:[-_\u058a\u2010\u2011]{particle}{plain}+)*"
    hyphened = f"[A-Za-z0-9][A-Za-z0-9.,\u00ad]*(?:-(?:{acronym}\\.|[A-Za-z0-9\u00ad]+))+"
    part = "[A-Za-z0-9]+(?:-[A-Za-z]+){0,2}"
    joined = f"[A-Z]+(?:(?:[+&]|{caseless('&amp;')})[A-Z]+)+"
    file = f"{lettery}+(?:\\.{lettery}+)*\\.{_any_of(_FILES)}"
    ampersand = f"(?:&|{caseless('&amp;')})"
    special = "|".join(
        [
            f"-{_any_of('rrb lrb rcb lcb rsb lsb')}-",
            _any_of("c[.]d[.]s pro- anti-"),
            f"[sS]{ampersand}(?:[pP]-500|[lL][sS])",
            f"{caseless('cap')}{apostrophe}[nN]|[cC]{apostrophe}{caseless('est')}",
        ]
    )

    inside = '[^ \t\n\x0c\r"<>|()]+[^ \t\n\x0c\r"<>|.!?(){},-]'
    address = f'{caseless("https?")}://[^ \t\n\x0c\r"<>|(){{}}]+[^ \t\n\x0c\r"<>|.!?(){{}},-]'
    site = f'{caseless("www")}\\.(?:[^ \t\n\x0c\r"<>|.!?(){{}},]+\\.)+[a-zA-Z]{{2,4}}'
    known = f"(?:[^ \t\n\x0c\r\"`'<>|.!?(){{}},-_$]+\\.)+{_any_of('com net org edu')}"
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
    return [
        ("keep", f"{caseless('c[+][+]')}|[cCfF]\\#", ""),
        ("split 3", _any_of("cannot 'twas"), ""),
        ("split 2", _any_of("gonna gotta lemme gimme wanna 'tis"), ""),
        ("join", markup, ""),
        ("dash", f"&{_any_of('md mdash ndash')};|[\x96\x97\u2013-\u2015]", ""),
        ("ampersand", caseless("&amp;"), ""),
        ("keep", f"&(?:{_any_of('ht tl ur lr qc ql qr odq cdq')}|\\#[0-9]+);", ""),
        ("soft", word, ending),
        ("soft", "[A-Za-z\u00ad]*[A-MO-Za-mo-z]\u00ad*", f"[nN]{any_apostrophe}[tT]"),
        ("soft", word, ""),
        *(("keep", pattern, "") for pattern in with_apostrophe),
        ("keep", f"[yY]{apostrophe}", f"[{alpha}]"),
        ("keep", address, ""),
        ("keep", site, ""),
        ("keep", f"{site}/{inside}", ""),
        ("keep", f"{known}(?:/{inside})?", ""),
        ("keep", mail, ""),
        ("keep", f"@[a-zA-Z_][a-zA-Z_0-9]*|\\#{letter}+", ""),
        ("quote", ending, "[^A-Za-z]"),
        ("quote", f"[nN]{any_apostrophe}[tT]", "[^A-Za-z]"),
        ("keep", f"{digit}{{1,2}}[-/]{digit}{{1,2}}[-/]{digit}{{2,4}}", ""),
        ("soft", number, ""),
        (
            "keep",
            "[\u207a\u207b\u208a\u208b]?(?:[\u2070\u00b9\u00b2\u00b3\u2074-\u2079]+|[\u2080-\u2089]+)",
            "",
        ),
        ("join", fraction, ""),
        ("map", "[\u00bc-\u00be\u2153-\u215e]", ""),
        ("ampersand", special, ""),
        ("keep", f"{part}(?:\\\\?/{part}){{1,2}}", ""),
        ("keep", "[A-Z]*\\$|\\#", ""),
        ("map", "[\u00a2-\u00a5\x80\u20a0\u20a4\u20ac\u060b\u0e3f\uffe0\uffe1\uffe5\uffe6]", ""),
        ("acronym", initials + "\\.", f"{white}+(?:{_any_of(_OPENERS)}|{markup}){white}"),
        ("keep", _any_of(_BEFORE_NUMBERS) + "\\.", f"{white}?{digit}"),
        ("keep", "(?:[pP][tT][eyEY]|[cC][oO])\\.", blank + _any_of("ltd lim")),
        ("again", before_small, f"{white}(?:{white}|[A-Z]|{markup})"),
        ("keep", before_small, "[\\s\\S]{2}"),
        ("again", before_small, ""),
        ("keep", before_capital + "\\.", ""),
        ("keep", before_capital, blank),
        ("keep", acronym, white),
        ("keep", f"{apostrophe}[0-9][0-9]", white),
        ("keep", file, f"(?:{white}|[.?!,])"),
        ("soft", word + "\\.", after_point),
        ("phone", phone, ""),
        ("quote", f'"|{caseless("&quot;")}', ""),
        ("drop", "\x7f", ""),
        ("less", f"<|{caseless('&lt;')}", ""),
        ("more", f">|{caseless('&gt;')}", ""),
        ("bracket", "[<>]?[:;=][-o*']?[()DPdpO\\\\{@|\\[\\]]", "[^A-Za-z0-9]"),
        ("bracket", asian, ""),
        ("bracket", "[][(){}]", ""),
        ("dashes", "-+", ""),
        ("dots", "\\.{3,5}|(?:\\.[ \u00a0]){2,4}\\.|[\x85\u2026]", ""),
        ("keep", "@+|\\#+|_+|\\*+|(?:\\\\\\*){1,3}|[?!]+|<<|>>|=|/", ""),
        ("keep", after_point, ""),
        ("keep", "[.\u00a1\u00bf\u037e\u0589\u061f\u06d4\u0700-\u0702\u07fa\u3002]", ""),
        ("soft", hyphened + "\\.", after_point),
        ("soft", hyphened, ""),
        ("keep", compound + "\\.", after_point),
        ("keep", compound, ""),
        ("ampersand", joined + "\\.", after_point),
        ("ampersand", joined, ""),
        ("quote", "'", "[A-Za-z][^ \t\n\r\u00a0]"),
        ("quote", ending, ""),
        ("quote", f"''|[`\u2018-\u201f\x91-\x94\u2039\u203a\u00ab\u00bb]{{1,2}}|{apostrophe}", ""),
        ("keep", _SYMBOL, ""),
        ("drop", f"\0|{blank}+|[{BREAK}]|[\u200b\u200e\u200f\ufeff]|{caseless('&nbsp;')}", ""),
    ]
