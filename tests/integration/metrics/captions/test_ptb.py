"""Tokens against the tool kit's own tokenizer: every caption there is, nasty ones, and made-up ones."""

import csv
import json
import random

import pytest

from coco_tool_kit import java_tokens
from counterfoil.errors import InputError
from counterfoil.metrics.captions.ptb import PUNCTUATION, tokenize, tokenize_all
from refusals import refuses

#: As the tool kit's tokenizer was seen to do it, so that these hold where there is no Java.
SEEN = {
    "A man's dog can't jump.": "a man 's dog ca n't jump",
    "cannot gonna lemme wanna 'tis 'twas": "can not gon na lem me wan na 't is 't was",
    "I'm we've he'll she'd they're won't": "i 'm we 've he 'll she 'd they 're wo n't",
    "Mr. Smith of the U.S. at 5 p.m. in St. Louis.": "mr. smith of the u.s. at 5 p.m. in st. louis",
    "J. K. Rowling vs. e.g. Dr. Who etc.": "j. k. rowling vs. e.g. dr. who etc.",
    "1,000.50 1/2 1 1/2 $5 50% 12:55 3-year-old 2nd '90s": (
        "1,000.50 1/2 1\u00a01/2 $ 5 50 % 12:55 3-year-old 2nd '90s"
    ),
    "t-shirt, black-and-white; a - b -- c --- d": "t-shirt black-and-white a b c d",
    "... wait...what . . . \u2026": "wait what",
    "\"quotes\" \u201ccurly\u201d \u2018single\u2019 it\u2019s ``x''": "quotes curly single it 's x",
    "and/or a/b c/d/e/f and / or": "and/or a/b c/d/e / f and / or",
    "&amp; &lt; &gt; &quot; AT&T rock&roll": "& < > at&t rock & roll",
    "foo@bar.com http://www.x.com/abc?d=1. www.foo.com": "foo@bar.com http://www.x.com/abc?d=1 www.foo.com",
    "(a) [b] {c} <d> < e >": "-lrb- a -rrb- -lsb- b -rsb- -lcb- c -rcb- <d> < e >",
    "No. 5, no. x, p. 3": "no. 5 no x p. 3",
    "rock 'n' roll, o'clock, O'Malley, c'mon, y'all": "rock 'n' roll o'clock o'malley c'mon y' all",
    "dog.cat what?! hey!!": "dog.cat what ?! hey !!",
    "caf\u00e9 \u00bd \u00a35 \u20ac5 \u00b0": "caf\u00e9 1/2 # 5 $ 5 \u00b0",
    "\U0001f600 a \U0001f44d": "a",
    "a_b == #tag @name :) C++": "a_b = = #tag @name :-rrb- c++",
    "a\tb\nc\r\nd\u2028e": "a b c d e",
    " . ": "",
    "": "",
}

NASTY = """
isn't. **a** [a]or a-b.c 'twas ' don't' "don't" ain't dogs' 's 're James's men's boys' O'o d'Art's
l'Eau-d'X n't U.S.-based non-U.S. Sino-U.S. I.e. dog M.I.T. The dog. A. man I. The dog Ph.D. Ed.D.
Jr. Sr. Ave. Blvd. Rd. Co. Ala. Ark. ark. Del. Ill. ill. La. la. Mass. Miss. miss. Tex. Ore. Pa.
Wash. wash. Jan. Feb.x Mar.. Mon., tel. sq. 4'x6' 5'10" 6'2 20's 5x 5X5 5ft. 50-50. 50/50 1/2-inch
24/7 11/12/13 (650) 723-0293 650-723-0293 +5 -5 .5 0.5. 5. w/ w/o a//b /b his/her/its/our *a a*
\\*\\* \\/ a\\b ---- a---b a----b -a a- - a+b A&B a&b A&amp;B a&amp;b ~ ^ | x@y. a.b-c@d.e, x.co.uk
https://x.y? ftp://a.b file.jpg 000123.jpg a-b.jpg foo.txt, :( ;-) =) :o) ^_^ -_- <3 (-: :/ &eacute;
caf&eacute; &nbsp; &#39; &mdash; &lt;b&gt; <br> <a href="x"> </p> <unk> << >> {} [] () -LRB-
pro-life US$ HK$5 C$5 #5 #a_b @1 @a_b 5% $1,000 \u00a2 \u00a5 \u00ab \u00bb \u00ad h\u00adyphen
\u200b \u00b2 a\u00b2 m\u00b3 \u2122 \u65e5\u672c \ud55c\uad6d \u043c\u0438\u0440 \u00f1and\u00fa
\uff11 \uff01 \u2013 \u2014 \u2032 \u2190 \u2665 \u2605 co. ltd pty. Ltd no. 5 fig. 3 prop. x art. 5
OK! Yahoo! a.k.a. cf. Wm. Ft. oz. ft. sec. 4 S&P-500 Cap'n c'est
""".strip().splitlines()
BITS = [
    *"abcdefnstuABCNSTU0123459''''....,,,---__//&&$$##@@**!?:;()[]<>\"`+=%^~|\\{}",
    *("n't", "'s", "'re", "'ll", "&amp;", "&lt;", "www.", ".com", "http://", ".jpg", "\u2019", "\u201c"),
    *("no", "mr", "St", "Co", "pm", "can", "not", "\u2026", "\u00e9", "\u00bd"),
    *("\u00ad", "\u00a0", " ", " ", " "),
]


def made_up(seed, n):
    """Captions of odd words in odd order, some words broken in the middle, and strings of odd bits."""
    rng = random.Random(seed)
    words = [word for line in [*NASTY, *SEEN] for word in line.split()] + ["a", "The", "dog", "5", "12", "."]
    captions = []
    for _ in range(n):
        chosen = rng.choices(words, k=rng.randint(1, 8))
        place = rng.randrange(len(chosen))
        chosen[place] += rng.choice(words) if rng.random() < 0.3 else ""
        if rng.random() < 0.3:
            cut = rng.randint(0, len(chosen[place]))
            chosen[place] = chosen[place][:cut] + rng.choice(BITS) + chosen[place][cut:]
        captions.append(" ".join(chosen))
        captions.append("".join(rng.choices(BITS, k=rng.randint(1, 14))))
    return captions


@pytest.mark.parametrize("caption", SEEN)
def test_as_the_tool_kit_was_seen_to_cut(caption):
    assert tokenize(caption) == SEEN[caption]


def cut_alike(captions, *, apart):
    rows = zip(captions, java_tokens(captions, apart=apart), tokenize_all(captions), strict=True)
    assert [row for row in rows if row[1] != row[2]] == []


@pytest.mark.parametrize("many", [600, pytest.param(5_000, marks=pytest.mark.slow)])
def test_nasty_and_made_up_captions_are_cut_as_by_the_tool_kit(many):
    # A text of its own here may not break lines otherwise than by "\n", where the tool kit loses its place.
    captions = [text.replace("\r", " ").replace("\u2028", " ") for text in (*NASTY, *SEEN, *made_up(0, many))]
    cut_alike(captions, apart=True)


def texts(value):
    if isinstance(value, str) and " " in value:
        yield value
    elif isinstance(value, (list, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)


def test_every_caption_of_the_real_data_is_cut_as_by_the_tool_kit(shared_data):
    lines = (shared_data / "flickr8k" / "Flickr8k.token.txt").read_text("utf-8").split("\n")
    captions = [line.split("\t", 1)[1] for line in lines if line]
    assert len(captions) == 40_460
    for file in sorted(shared_data.glob("**/*.json")):
        if file.parent.name in ("annotations", "sugarcrepe", "clipscore_example"):
            captions += texts(json.loads(file.read_text("utf-8")))
    for file in sorted(shared_data.glob("*/*.csv")):
        with file.open(encoding="utf-8", newline="") as lines:
            cells = (cell for row in csv.reader(lines) for cell in texts(row))
            captions += (cell for cell in cells if not cell.startswith("<PIL"))
    captions = list(dict.fromkeys(captions))
    assert len(captions) > 50_000
    # All in one go, as anybody runs it: nowhere does a caption's end hang on the next one's start.
    cut_alike(captions, apart=False)


def test_a_caption_depends_on_itself_alone_unlike_in_the_tool_kit():
    assert tokenize_all(["plan V.", "The dog"]) == ["plan v.", "the dog"]
    assert tokenize_all(["page no.", "5 dogs"]) == ["page no", "5 dogs"]
    assert java_tokens(["plan V.", "The dog"], apart=False) == ["plan v", "the dog"]
    assert java_tokens(["plan V.", "a dog"], apart=False) == ["plan v.", "a dog"]
    assert java_tokens(["page no.", "5 dogs"], apart=False) == ["page no.", "5 dogs"]


def test_no_punctuation_no_capitals_and_nothing_changes_when_cut_again():
    for caption in NASTY:
        tokens = tokenize(caption).split(" ")
        assert not PUNCTUATION & set(tokens)
        assert [token.lower() for token in tokens] == tokens
    plain = "a man 's dog jumps over the fence"
    assert tokenize(plain) == plain == tokenize(tokenize(plain))


def test_equal_captions_give_equal_tokens_in_the_order_given():
    assert tokenize_all(["A dog.", "Two cats!", "A dog.", ""]) == ["a dog", "two cats", "a dog", ""]
    assert tokenize_all([]) == []


def test_a_long_text_without_blanks_takes_no_quadratic_time():
    assert tokenize("a," * 2000) == " ".join("a" * 2000)


@pytest.mark.parametrize("wrong", [None, 3, 1.5, ["a dog"], b"a dog"])
def test_refuses_what_is_no_text(wrong):
    refuses("caption 1: a caption is not a text; given", tokenize_all, ["a dog", wrong], error=InputError)
