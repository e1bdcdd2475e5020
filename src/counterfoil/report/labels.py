"""Labels of measures and groups in print, one line on the meaning of each, and counts in words."""

import re
from collections.abc import Iterable, Sequence

from counterfoil.metrics.measures import find, signed
from counterfoil.report.tables import Style


def measure_label(name: str, default: str | None = None) -> str:
    """The label of a measure in print; of a name that is none, `default` or the name itself.

    >>> measure_label("i2t_recall_at_5"), measure_label("group_match"), measure_label("loss")
    ('I2T R@5', 'Group match', 'loss')
    """
    measure = find(name)
    return measure.label if measure is not None else name if default is None else default


def measure_meaning(name: str, form: str = "") -> str:
    """One line on a measure of a form of question, by default the first that has it; empty where none is.

    >>> measure_meaning("t2i_recall_at_1")
    'a right answer comes first; each caption looks for its images'
    """
    measure = find(name, form)
    return "" if measure is None else measure.meaning


def style_of(measure: str, *, difference: bool = False) -> Style:
    """How the values of a measure, or differences of them, are written.

    >>> style_of("accuracy"), style_of("spearman"), style_of("spearman", difference=True)
    ('percent', 'correlation', 'shift')
    """
    if signed(measure):
        return "shift" if difference else "correlation"
    return "points" if difference else "percent"


def unit(measures: Iterable[str]) -> str:
    """What stands over a column of values: per cent, or times a hundred for correlations."""
    return "x 100" if any(map(signed, measures)) else "%"


#: What a benchmark's groupings are called after "by".
_GROUPINGS = {
    "type": "kind of change",
    "subset": "kind of change and what is changed",
    "collapsed": "what is swapped",
    "preds": "number of main predicates",
    "visual": "visual tag",
    "tag": "linguistic tag",
    "relation_kept": "relation",
    "attributes_kept": "attributes",
    "source": "source of the captions",
    "category": "category of the pair",
    "sampling": "how pairs were drawn",
    "things": "number of things shown",
    "motion": "motion",
}
_SHORTENED = {"obj": "object", "att": "attribute", "rel": "relation"}


def group(key: str) -> str:
    """What a group of questions is called in print, from the key under which a result holds it.

    Names that benchmarks' authors print stay as they are; a name made for files becomes words.

    >>> group("replace_obj"), group("Adjective-Color (3-way swap)"), group("visual:Series")
    ('replace object', 'Adjective-Color (3-way swap)', 'Series (visual tag)')
    """
    of, colon, label = key.partition(":")
    if colon and of in _GROUPINGS:
        return f"{group(label)} ({grouping(of)})"
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", key):
        return key
    return " ".join(_SHORTENED.get(word, word) for word in key.split("_"))


def grouping(name: str) -> str:
    """What a division of a benchmark's questions is called behind "by".

    >>> grouping("collapsed"), grouping("visual_any_series"), grouping("photographer")
    ('what is swapped', 'visual any series', 'photographer')
    """
    return _GROUPINGS.get(name) or group(name)


def amount(number: int, noun: str) -> str:
    """A number with its noun, which is given in the singular; commas between thousands.

    >>> amount(1, "image"), amount(0, "true pair"), amount(12_000, "query"), amount(2, "image with captions")
    ('1 image', '0 true pairs', '12,000 queries', '2 images with captions')
    """
    head, with_, rest = noun.partition(" with ")
    if number != 1:
        head = head[:-1] + "ies" if head.endswith("ry") else head + "s"
    return f"{number:,} {head}{with_}{rest}"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def duration(seconds: float) -> str:
    """Seconds in words, no more exact than an estimate is.

    >>> duration(0.2), duration(8.2), duration(83), duration(840), duration(9000)
    ('1 s', '10 s', '1 min 20 s', '14 min', '2.5 h')
    """
    tens = round(seconds / 10)
    if tens < 6:
        return f"{10 * tens or max(1, round(seconds))} s"
    minutes, rest = divmod(tens, 6)
    if minutes >= 90:
        return f"{seconds / 3600:,.1f} h"
    return f"{minutes} min" + (f" {10 * rest} s" if rest and minutes < 10 else "")


def short(name: str, most: int = 22) -> str:
    """A name that fits; the middle goes, since both ends of a checkpoint's name tell more."""
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
