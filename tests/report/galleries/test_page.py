"""The page over galleries as text: complete, closed to the outside, and apart from that of other forms."""

import base64
import hashlib
import html as html_of
import re
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.data.forms import Gallery, Search
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.metrics.ranks import Positives
from counterfoil.report.comparison_tables import differences, headline, main_measures, overview
from counterfoil.report.forms import first_items
from counterfoil.report.page import page
from counterfoil.report.tables import to_csv, to_latex, to_markdown, written

from ..conftest import gallery_benchmark, gallery_scores, rankings_of, run_of
from ..outlines import Outline
from ..test_page import island
from .test_browser_data import ruled


def test_the_overview_has_a_block_per_direction(galleries: Comparison) -> None:
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


def test_everything_has_all_measures_and_what_a_cut_ranking_cannot_say_is_empty(
    galleries: Comparison,
) -> None:
    table = overview(galleries)
    labels = [column.label for column in table.columns[: table.blocks[0][1]]]
    assert labels[:2] == ["mAP@R", "R@1"]
    assert {"R@5", "R@10", "R-Precision", "MRR", "nDCG", "graded R@1", "graded R-Precision"} == set(
        labels[2:]
    )
    cut = next(row for row in table.rows if row.name == "cut")
    empty = {
        column.measure for cell, column in zip(cut.cells, table.columns, strict=True) if cell.value is None
    }
    assert empty == set(galleries.runs[2].result.provenance["gallery"]["unsupported"])


def test_galleries_stand_beside_other_benchmarks(galleries: Comparison, choices: Comparison) -> None:
    table = overview(galleries, choices, finer=False)
    assert table.blocks[0] == ("Drawn gallery: image to text", 1)
    assert table.blocks[-1] == ("Choices", 1)


def test_tables_are_written_in_every_markup(galleries: Comparison) -> None:
    table = overview(galleries, finer=False)
    value = f"{100 * galleries.runs[0].result.measures['mean_map_at_r'].value:.2f}"
    assert "| Model | Image to text mAP@R | Text to image mAP@R | Mean of both mAP@R |" in to_markdown(table)
    assert r"\multicolumn{1}{c}{Mean of both}" in to_latex(table)
    for text in (to_markdown(table), to_latex(table)):
        assert value in text
    assert "good,Mean of both,mean_map_at_r,mAP@R,0." in to_csv(table)
    pairs = differences(galleries, "mean_map_at_r")
    assert pairs.caption == "Differences in mean mAP@R on Drawn gallery."
    assert len(pairs.rows) == 3
    # Queries share images, so McNemar's test does not apply.
    assert all(row.cells[3].value is None for row in pairs.rows)


def test_tags_balance_ids_are_unique_and_links_lead_somewhere(gallery_report: str) -> None:
    outline = Outline.of(gallery_report)
    links = [a["href"] for tag, a in outline.attributes if tag == "a"]
    assert {"#queries", "#questions", "#b-drawn-gallery"} <= set(links)
    assert all(link[1:].split("?")[0] in outline.ids for link in links)


def test_the_one_script_is_the_one_the_policy_names(gallery_report: str) -> None:
    policy = html_of.unescape(
        re.search(r'Content-Security-Policy" content="([^"]*)"', gallery_report).group(1)
    )
    (script,) = re.findall(r"<script>(.*?)</script>", gallery_report, re.S)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy


def test_numbers_notes_and_figures_stand_in_the_page(gallery_report: str, galleries: Comparison) -> None:
    body = " ".join(html_of.unescape(re.sub(r"<[^>]+>", " ", gallery_report)).split())
    for comparison in (overview(galleries),):
        for row in comparison.rows:
            assert row.name in body
            assert all(written(c, k) in body for c, k in zip(row.cells, comparison.columns, strict=True))
    assert "30 images look for 0 to 4 right captions among all 60" in body
    assert "The rankings of cut end after 12 captions" in body
    assert "How far down to look" in body
    assert "How many answers are right" in body
    assert (
        "R@5: a right answer is among the first 5" in body.replace(" :", ":") or "among the first 5" in body
    )


def test_data_of_galleries_and_of_pairs_are_apart(gallery_report: str) -> None:
    data = island(gallery_report)
    assert [b["anchor"] for b in data["galleries"]] == ["b-drawn-gallery"]
    assert [b["anchor"] for b in data["benchmarks"]] == ["b-choices"]


def test_a_page_without_galleries_carries_nothing_of_theirs(report: str) -> None:
    assert "galleries" not in island(report)
    assert 'id="queries"' not in report
    assert "The browser of a gallery's queries" not in report


def test_a_page_of_galleries_alone_has_no_questions() -> None:
    benchmark = gallery_benchmark(8)
    run = run_of(benchmark, "alone", rankings_of(benchmark, gallery_scores(8)["good"]))
    comparison = compare([run])[0]
    text = page([comparison])
    assert 'id="questions"' not in text
    assert "The browser of quads and choices" not in text
    assert "More than luck?" not in text
    assert text == page([comparison])
    never = page([comparison], pictures="never")
    assert island(never)["pictures"] == []
    assert "Images were left out as asked." in never


def test_the_licence_keeps_pictures_and_captions_out() -> None:
    benchmark = gallery_benchmark(8, redistributable=False, licence="research only")
    run = run_of(benchmark, "alone", rankings_of(benchmark, gallery_scores(8)["good"]))
    comparison = compare([run])[0]
    closed = page([comparison])
    assert island(closed)["pictures"] == []
    assert "about photo" not in closed
    assert "the licence of Drawn gallery (research only) does not let a report carry them" in closed
    assert "about photo" in page([comparison], pictures="always")


def test_a_sample_says_that_it_is_one(
    gallery_report: str, galleries: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "drawn by lot" not in gallery_report
    monkeypatch.setattr(first_items, "MOST_QUERIES", 40)
    # Of 90 queries 88 have a right answer.
    text = page([galleries], pictures="never")
    assert (
        "Of 88 queries with a right answer 40 are here, drawn by lot. Images were left out as asked." in text
    )


def test_groups_of_queries_have_a_table() -> None:
    benchmark = gallery_benchmark(8)
    labels = tuple("early" if i % 8 < 4 else "late" for i in range(24))
    grouped = replace(benchmark, questions=replace(benchmark.gallery, groupings={"when <asked>": labels}))
    run = run_of(grouped, "alone", rankings_of(grouped, gallery_scores(8)["good"]))
    text = html_of.unescape(page([compare([run])[0]], pictures="never"))
    assert "Results on Drawn gallery by when <asked>." in text
    assert f"{100 * run.result.groups['late']['t2i_map_at_r'].value:.2f}" in text


def test_a_gallery_of_one_direction_has_a_page() -> None:
    benchmark = gallery_benchmark(8)
    gallery = benchmark.gallery
    nobody = Search(np.empty(0, np.int64), Positives.of([]))
    alone = Gallery(gallery.ids[:8], i2t=gallery.i2t, t2i=nobody, owners=gallery.owners, n_images=8)
    one_way = replace(benchmark, questions=alone)
    scores = gallery_scores(8)
    runs = [run_of(one_way, name, rankings_of(one_way, table)) for name, table in scores.items()]
    text = page([compare(runs)[0]], pictures="never")
    body = html_of.unescape(re.sub(r"<[^>]+>", " ", text))
    assert "8 images look for 0 to 4 right captions among all 16." in body
    assert "has I2T mAP@R" in body
    assert "Two directions" not in body
    assert "How far down to look" in body
    assert "captions look for" not in body


def test_where_right_is_a_rule_there_is_no_curve() -> None:
    benchmark, answers, _ = ruled()
    run = run_of(benchmark, "ruled", answers)
    text = page([compare([run])[0]], pictures="never")
    body = html_of.unescape(re.sub(r"<[^>]+>", " ", text))
    assert f"{100 * run.result.measures['mean_pmrp'].value:.2f}" in body
    assert "How far down to look" not in body
    assert "How many answers are right" in body
    # The main measure is the only one, so there is no second table.
    assert "All measures, as a table" not in body
