"""Labels of measures and groups in print, and one line on the meaning of each.

Those of retrieval are written by pattern: a direction before the measure, any K behind the recall.
"""

import re
from collections.abc import Callable, Iterator, Mapping

#: The directions of retrieval, by the prefix of a measure's name, as a heading says them.
SIDES: Mapping[str, str] = {"i2t": "Image to text", "t2i": "Text to image", "mean": "Mean of both"}

_SHORT = {"i2t": "I2T", "t2i": "T2I", "mean": "mean"}
_ASKS = {
    "i2t": "each image looks for its captions",
    "t2i": "each caption looks for its images",
    "mean": "the mean of both directions",
}

_LABELS = {
    # The names of BiVLC Table 3.
    "i2t": "I2T",
    "t2i": "T2I",
    "group": "Group",
    "ipos2t": "Ipos2T",
    "ineg2t": "Ineg2T",
    "tpos2i": "Tpos2I",
    "tneg2i": "Tneg2I",
    "group_match": "Group match",
    "accuracy": "Accuracy",
    "accuracy_macro": "Accuracy (macro)",
    # Those of ECCV Caption section 4.1 and Appendix E.
    "r_precision": "R-Precision",
    "map_at_r": "mAP@R",
    "mrr": "MRR",
    "ndcg": "nDCG",
    "graded_r_precision": "graded R-Precision",
    "pmrp": "PMRP",
    # Those of PAC-S.
    "kendall_tau_b": "Kendall τ-b",
    "kendall_tau_c": "Kendall τ-c",
    "spearman": "Spearman ρ",
    "pearson": "Pearson r",
}

#: The measures in [-1, 1], which are printed times a hundred with one decimal and never as a per cent.
CORRELATIONS = ("kendall_tau_b", "kendall_tau_c", "spearman", "pearson")

_MEANINGS = {
    "i2t": "both images pick their own caption",
    "t2i": "both captions pick their own image",
    "group": "both directions are right",
    "ipos2t": "the first image picks its caption",
    "ineg2t": "the second image picks its caption",
    "tpos2i": "the first caption picks its image",
    "tneg2i": "the second caption picks its image",
    "group_match": "the right matching has the larger sum of scores",
    "accuracy": "the right candidate scores above all others",
    "accuracy_macro": "accuracy averaged over groups, each counting the same",
    "r_precision": "the share of right answers among the first R, where R of them exist",
    "map_at_r": "as R-Precision, with right answers worth more the earlier they come",
    "mrr": "one over the place of the first right answer",
    "ndcg": "right answers worth less the later they come, over the best possible order",
    "graded_r_precision": "as R-Precision, with a partial match worth its part",
    "pmrp": "R-Precision where all that shows nearly the same classes of object is right",
    "kendall_tau_b": "of pairs that differ in rating and in score, how many more agree than disagree; "
    "corrected for ties on both sides, times 100",
    "kendall_tau_c": "the same, corrected for how few ratings there are to give, times 100",
    "spearman": "whether ranks by score and ranks by rating go together, times 100",
    "pearson": "whether score and rating lie on a line, times 100",
}

_RECALL = re.compile(r"(graded_)?recall_at_([1-9]\d*)")


def parted(measure: str) -> tuple[str, str]:
    """The direction and the rest of a measure of retrieval; no direction for other measures.

    >>> parted("i2t_recall_at_5"), parted("i2t"), parted("group_match")
    (('i2t', 'recall_at_5'), ('', 'i2t'), ('', 'group_match'))
    """
    side, _, base = measure.partition("_")
    return (side, base) if side in SIDES and base else ("", measure)


class _Names(Mapping[str, str]):
    """Measure to text, known ones listed and the others by pattern."""

    def __init__(self, known: Mapping[str, str], find: Callable[[str], str | None]) -> None:
        self._known, self._find = known, find

    def __getitem__(self, measure: str) -> str:
        found = self._find(measure)
        if found is None:
            raise KeyError(measure)
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)


def _label(measure: str) -> str | None:
    side, base = parted(measure)
    if recall := _RECALL.fullmatch(base):
        found = f"{'graded ' if recall[1] else ''}R@{recall[2]}"
    elif base in _LABELS:
        found = _LABELS[base]
    else:
        return None
    return f"{_SHORT[side]} {found}" if side else found


def _meaning(measure: str) -> str | None:
    side, base = parted(measure)
    if recall := _RECALL.fullmatch(base):
        k = int(recall[2])
        if recall[1]:
            found = "what the first place is worth: 1 for a full match, less for a partial one"
        else:
            found = "a right answer comes first" if k == 1 else f"a right answer is among the first {k:,}"
    elif base in _MEANINGS:
        found = _MEANINGS[base]
    else:
        return None
    return f"{found}; {_ASKS[side]}" if side else found


#: What a measure is called in print.
LABELS: Mapping[str, str] = _Names(_LABELS, _label)
#: One line on what a measure asks, for readers who meet it for the first time.
MEANINGS: Mapping[str, str] = _Names(_MEANINGS, _meaning)

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
