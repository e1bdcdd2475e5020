"""The measures by name: of which form, what they count, and what chance alone would get."""

from collections.abc import Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class MeasureEntry:
    """A measure as `counterfoil list measures` shows it."""

    name: str
    form: str
    summary: str
    chance: str


_ENTRIES = (
    MeasureEntry("i2t", "quad", "both images pick their captions (Winoground's text score)", "1/4"),
    MeasureEntry("t2i", "quad", "both captions pick their images (Winoground's image score)", "1/4"),
    MeasureEntry("group", "quad", "both directions right", "1/6"),
    MeasureEntry("ipos2t", "quad", "the first image picks its caption", "1/2"),
    MeasureEntry("ineg2t", "quad", "the second image picks its caption", "1/2"),
    MeasureEntry("tpos2i", "quad", "the first caption picks its image", "1/2"),
    MeasureEntry("tneg2i", "quad", "the second caption picks its image", "1/2"),
    MeasureEntry(
        "group_match", "quad", "the right matching has the larger sum: s00 + s11 > s01 + s10", "1/2"
    ),
    MeasureEntry(
        "accuracy", "choice", "the correct candidates score above all others (micro average)", "m!(k-m)!/k!"
    ),
    MeasureEntry(
        "accuracy_macro", "choice", "mean over the benchmark's groups of each group's accuracy", "m!(k-m)!/k!"
    ),
    MeasureEntry("accuracy", "preference", "the preferred caption scores above the other", "1/2"),
    MeasureEntry(
        "accuracy_macro", "preference", "mean over the benchmark's groups of each group's accuracy", "1/2"
    ),
    MeasureEntry("kendall_tau_b", "rated", "pairs in order minus pairs out of order, ties allowed for", "0"),
    MeasureEntry(
        "kendall_tau_c", "rated", "the same for scales of different numbers of grades (Stuart)", "0"
    ),
    MeasureEntry("spearman", "rated", "correlation of ranks, ties at their mean rank", "0"),
    MeasureEntry("pearson", "rated", "correlation of the numbers themselves", "0"),
    # Of galleries, written with i2t_, t2i_ or mean_ before them, or without for all three.
    MeasureEntry("recall_at_1", "gallery", "whether the first item is right", "R/n"),
    MeasureEntry("recall_at_5", "gallery", "whether any of the first 5 is right", "1-C(n-R,5)/C(n,5)"),
    MeasureEntry("recall_at_10", "gallery", "whether any of the first 10 is right", "1-C(n-R,10)/C(n,10)"),
    MeasureEntry(
        "recall_at_K", "gallery", "whether any of the first K is right, for any K", "1-C(n-R,K)/C(n,K)"
    ),
    MeasureEntry(
        "r_precision", "gallery", "share of right items among the first R, the number of right ones", "R/n"
    ),
    MeasureEntry(
        "map_at_r", "gallery", "mean over the first R places of the precision where an item is right", "by R"
    ),
    MeasureEntry("mrr", "gallery", "one over the place of the first right item", "by R"),
    MeasureEntry("ndcg", "gallery", "gains discounted by place, over the best possible", "by gains"),
    MeasureEntry(
        "graded_recall_at_1",
        "gallery",
        "what the first item is worth, where matches may be partial",
        "by gains",
    ),
    MeasureEntry(
        "graded_r_precision", "gallery", "as r_precision, a partial match counting its part", "by gains"
    ),
    MeasureEntry(
        "pmrp", "gallery", "r_precision where all that shows nearly the same classes is right", "R/n"
    ),
)


def _by_name() -> Mapping[str, MeasureEntry]:
    """What several forms share stands once, under all of them."""
    found: dict[str, MeasureEntry] = {}
    for entry in _ENTRIES:
        known = found.get(entry.name)
        form = entry.form if known is None else f"{known.form}, {entry.form}"
        found[entry.name] = replace(known or entry, form=form)
    return found


MEASURES: Mapping[str, MeasureEntry] = _by_name()
