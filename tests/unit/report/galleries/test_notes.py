"""What is said of rankings: ties, what cannot be found, and what was cut."""

import numpy as np

from counterfoil.benchmarks.answers import Rankings
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.metrics.ties import Ties
from counterfoil.report.forms import FORMS
from counterfoil.report.notes import lead
from report_fixtures import gallery_benchmark, gallery_scores, rankings_of, run_of

GALLERY = FORMS["gallery"]


def one(answers: Rankings, *, policy: Ties = Ties.STRICT) -> Comparison:
    return compare([run_of(gallery_benchmark(), "alone", answers, ties=policy)])[0]


def texts(comparison: Comparison, kind: str) -> list[str]:
    return [note.text for note in GALLERY.notes(comparison) if note.kind == kind]


def test_a_constant_scorer_is_anything_between_nothing_and_all():
    comparison = one(rankings_of(gallery_benchmark(), np.zeros((30, 60))))
    (text,) = [text for text in texts(comparison, "warning") if "ties" in text]
    # 29 image and 59 caption queries have a right answer, and with it a tie. Captions of image 0 to 29 find
    # all they look for at best; image 0 cannot, for one of its four right captions is outside the gallery.
    assert text == (
        "alone ties a right and a wrong item in 88 of 90 queries: by the order of the tied, "
        "T2I mAP@R is anything from 0.00\N{NO-BREAK SPACE}% to 100.00\N{NO-BREAK SPACE}%."
    )


def test_ties_that_move_nothing_are_a_fact():
    scores = gallery_scores()["good"]
    untied = texts(one(rankings_of(gallery_benchmark(), scores)), "fact")
    assert any("No scorer ties" in text for text in untied)
    # The last places tie, where mAP@R never looks.
    floor = np.where(scores < np.quantile(scores, 0.3), -9.0, scores)
    (text,) = [t for t in texts(one(rankings_of(gallery_benchmark(), floor)), "fact") if t.startswith("Ties")]
    assert "moves no main measure by a point" in text


def test_what_is_outside_and_what_has_no_right_answer_is_counted(galleries):
    (outside,) = [text for text in texts(galleries, "warning") if "Outside" in text]
    # 29 images with two own captions and one in part, one of them with another that is nowhere.
    assert "1 of 88 right captions of image queries" in outside
    assert "caption queries" not in outside
    assert "Without a right answer, and so left out: 1 of 30 images and 1 of 60 captions." in texts(
        galleries, "fact"
    )


def test_a_cut_ranking_is_named_with_what_it_cannot_say(galleries):
    (text,) = [text for text in texts(galleries, "warning") if "end after" in text]
    assert text.startswith("The rankings of cut end after 12 captions and 12 images or later, too early for ")
    assert "nDCG" in text
    assert "mAP@R" not in text
    missing = galleries.runs[2].result.provenance["gallery"]["unsupported"]
    assert ("T2I MRR" in text) == ("t2i_mrr" in missing)


def test_notes_say_that_intervals_are_over_images(galleries):
    assert any("over images, each with the captions" in text for text in texts(galleries, "fact"))


def test_the_lead_is_about_the_mean_of_both_directions(galleries):
    value = galleries.runs[0].result.measures["mean_map_at_r"].value
    assert f"has mean mAP@R {100 * value:.2f}" in lead(galleries)


def test_about_counts_queries_and_right_answers():
    assert GALLERY.about(gallery_benchmark()) == (
        "30 images look for 0 to 4 right captions among all 60; "
        "60 captions look for 0 to 2 right images among all 30."
    )
    assert GALLERY.about(gallery_benchmark(parts=True)) == (
        "30 images look for 2 right captions among the 30 of their part; 60 captions look for 1 right image "
        "among the 15 of their part. Measures are means over 2 parts of the gallery."
    )


def test_the_tie_policy_in_words():
    answers = rankings_of(gallery_benchmark(), gallery_scores()["good"])
    said = {GALLERY.ties(one(answers, policy=policy)) for policy in Ties}
    assert len(said) == 3
    assert "Of equal scores, a wrong item stands before a right one." in said
