"""Labels of measures and groups in print, and one line on the meaning of each.

Those of retrieval are written by pattern: a direction before the measure, any K behind the recall.
"""

import re

from counterfoil.metrics.measures import find


def measure_label(name: str, default: str | None = None) -> str:
    """The label of a measure in print; of a name that is none, `default` or the name itself.

    >>> measure_label("i2t_recall_at_5"), measure_label("group_match"), measure_label("loss")
    ('I2T R@5', 'Group match', 'loss')
    """
    measure = find(name)
    if measure is not None:
        return measure.label
    return name if default is None else default


def measure_meaning(name: str, form: str = "") -> str:
    """One line on a measure of a form of question, by default the first that has it; empty where none is.

    >>> measure_meaning("t2i_recall_at_1")
    'a right answer comes first; each caption looks for its images'
    """
    measure = find(name, form)
    return "" if measure is None else measure.meaning


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
