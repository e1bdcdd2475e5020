"""Tables of galleries, their chapter of a page, and what is said of rankings."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.evaluation.compare import compare
from counterfoil.metrics.ties import Ties
from counterfoil.report.comparison_tables import differences, headline, main_measures, overview
from counterfoil.report.forms import FORMS
from counterfoil.report.forms import gallery as gallery_report
from counterfoil.report.notes import lead
from counterfoil.report.page import page
from counterfoil.report.tables import written
from report.galleries.test_browser_data import one_way, ruled
from report.test_page import island
from report_fixtures import gallery_benchmark, gallery_scores, rankings_of, run_of

GALLERY = FORMS["gallery"]


def test_the_overview_has_a_block_per_direction(galleries):
    table = overview(galleries, measures=headline(galleries))
    assert table.blocks == (("Image to text", 2), ("Text to image", 2), ("Mean of both", 2))
    assert [column.label for column in table.columns] == ["mAP@R", "R@1"] * 3
    assert [column.size for column in table.columns] == [29, 29, 59, 59, 88, 88]
    for row in table.rows[1:]:
        run = next(run for run in galleries.runs if run.name == row.name)
        for cell, column in zip(row.cells, table.columns, strict=True):
            side = column.measure.split("_")[0]
            values = run.items[column.measure]
            halves = [np.nanmean(half) for half in (values[:30], values[30:]) if not np.isnan(half).all()]
            assert len(halves) == (2 if side == "mean" else 1)
            assert written(cell, column) == f"{100 * np.mean(halves):.2f}"
    assert main_measures(galleries) == ("i2t_map_at_r", "t2i_map_at_r", "mean_map_at_r")


def test_everything_has_all_measures_and_what_a_cut_ranking_cannot_say_is_empty(galleries):
    table = overview(galleries)
    labels = [column.label for column in table.columns[: table.blocks[0][1]]]
    assert labels[:2] == ["mAP@R", "R@1"]
    graded = {"graded R@1", "graded R-Precision"}
    assert {"R@5", "R@10", "R-Precision", "MRR", "nDCG"} | graded == set(labels[2:])
    cut = next(row for row in table.rows if row.name == "cut")
    empty = {column.measure for cell, column in table.cells(cut) if cell.value is None}
    assert empty == set(galleries.runs[2].result.provenance["gallery"]["unsupported"])


def test_galleries_stand_beside_other_benchmarks(galleries, choices):
    table = overview(galleries, choices, finer=False)
    assert table.blocks[0] == ("Drawn gallery: image to text", 1)
    assert table.blocks[-1] == ("Choices", 1)


def test_queries_share_images_so_mcnemars_test_does_not_apply(galleries):
    pairs = differences(galleries, "mean_map_at_r")
    assert len(pairs.rows) == 3
    assert all(row.cells[3].value is None for row in pairs.rows)


@pytest.mark.usefixtures("undrawn")
def test_a_page_of_galleries_alone_has_no_questions_and_says_what_is_a_sample(monkeypatch):
    benchmark = gallery_benchmark(8)
    comparison = compare([run_of(benchmark, "alone", rankings_of(benchmark, gallery_scores(8)["good"]))])[0]
    monkeypatch.setattr(gallery_report, "MOST_QUERIES", 10)
    text = page([comparison], pictures="never")
    assert 'id="questions"' not in text
    assert "More than luck?" not in text
    assert island(text)["pictures"] == []
    # Of 24 queries 22 have a right answer.
    assert (
        "Of 22 queries with a right answer 10 are here as a sample of all groups or directions. Images"
        in text
    )


@pytest.mark.usefixtures("undrawn")
def test_groups_of_queries_have_a_table():
    benchmark = gallery_benchmark(8)
    labels = tuple("early" if i % 8 < 4 else "late" for i in range(24))
    grouped = replace(benchmark, questions=replace(benchmark.gallery, groupings={"when <asked>": labels}))
    run = run_of(grouped, "alone", rankings_of(grouped, gallery_scores(8)["good"]))
    (table,) = next(
        part for part in GALLERY.sections(compare([run])[0], "b-x") if part.key == "groups"
    ).tables
    assert table.caption == "Results on Drawn gallery by when <asked>."
    values = [cell.value for cell in table.rows[1].cells]
    assert run.result.groups["late"]["t2i_map_at_r"].value in values


def test_a_gallery_of_one_direction_has_a_chapter():
    found = one_way(8)
    assert GALLERY.about(found.runs[0].benchmark) == "8 images look for 0 to 4 right captions among all 16."
    assert "has I2T mAP@R" in GALLERY.chapter(found, "b-x", "").lead
    assert GALLERY.directions(found, "b-x") is None
    sections = GALLERY.sections(found, "b-x")
    assert [section.key for section in sections] == ["curves", "multiplicity"]
    assert "captions look for" not in sections[0].drawings[0].panels[0].lower()


@pytest.mark.usefixtures("undrawn")
def test_where_right_is_a_rule_there_is_no_curve():
    benchmark, answers, _ = ruled()
    run = run_of(benchmark, "ruled", answers)
    comparison = compare([run])[0]
    assert [section.key for section in GALLERY.sections(comparison, "b-x")] == ["multiplicity"]
    # The main measure is the only one, so there is no second table.
    assert GALLERY.everything(comparison) is None


def one(answers, *, policy=Ties.STRICT):
    return compare([run_of(gallery_benchmark(), "alone", answers, ties=policy)])[0]


def texts(comparison, kind):
    return [note.text for note in GALLERY.notes(comparison) if note.kind == kind]


def test_a_constant_scorer_is_anything_between_nothing_and_all():
    comparison = one(rankings_of(gallery_benchmark(), np.zeros((30, 60))))
    (text,) = [text for text in texts(comparison, "warning") if "ties" in text]
    # 29 image and 59 caption queries have a right answer, and with it a tie. Captions of image 0 to 29 find
    # all they look for at best; image 0 cannot, for one of its four right captions is outside the gallery.
    assert text.startswith(
        "alone ties a right and a wrong pair in 88 of 90 queries (97.78\N{NO-BREAK SPACE}%): mean mAP@R"
    )
    untied = one(rankings_of(gallery_benchmark(), gallery_scores()["good"]))
    assert any("No scorer has a tie" in text for text in texts(untied, "fact"))


def test_what_is_outside_undefined_cut_and_not_measured_is_said(galleries):
    # 29 images with two own captions and one in part, one of them with another that is nowhere.
    warnings, outside = texts(galleries, "warning"), "Right answers outside the gallery, never found: "
    assert [text for text in warnings if "outside" in text] == [f"{outside}1 of 88 captions."]
    for kind in ("image", "caption"):
        assert f"Without a right answer, left out: 1 {kind}." in texts(galleries, "fact")
    assert "cut: rankings are cut, the shortest after: image → text 12, text → image 12." in warnings
    (text,) = [text for text in warnings if text.startswith("cut: not measured: ")]
    assert "ndcg" in text
    assert "map_at_r" not in text


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
    assert any(text.endswith("a tie is wrong.") for text in said)
