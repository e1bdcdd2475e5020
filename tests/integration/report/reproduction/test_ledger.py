"""The ledger over the released files: what is the same, what differs and why, what is missing."""

import csv
import json
import re
import shutil
from collections import Counter

import numpy as np
import pytest
from scipy.stats import pearsonr

import counterfoil as cf
from counterfoil.errors import CounterfoilError, DataError, UnknownNameError
from counterfoil.metrics import contrast
from counterfoil.report.reproduction import Basis, Verdict, all_papers, files, reproduce, summary
from counterfoil.report.reproduction.recipes import ReleasedFiles, chance, mask
from refusals import refuses
from report.reproduction.conftest import by_cell, printed_cells, save_ledger

#: Every cell of BiVLC and Winoground that the released files contradict, with what they say.
DIFFERING = {
    ("BiVLC", "Table 1", "SUGARCREPE, by its files today", "SWAP OBJ"): 245,
    ("BiVLC", "Table 1", "SUGARCREPE, by its files today", "Total"): 7511,
    ("BiVLC", "Table 5", "CLIP Det", "Text detection acc"): 57.2963,
    ("BiVLC", "Table 5", "CLIP Det", "Img detection acc"): 99.9489,
    ("Winoground", "Table 1", "1 Main Pred", "Count"): 292,
    ("Winoground", "Table 1", "Symbolic, as Table 5 has it", "Count"): 28,
    ("Winoground", "Table 1", "Series, as Table 5 has it", "Count"): 23,
    ("Winoground", "Table 1", "Pragmatics, as Table 5 has it", "Count"): 17,
}


#: How many cells of each table of ECCV Caption its own numbers contradict.
ECCV_DIFFERING = {
    "Section 3": 2,
    "Section 3.3 and C.1": 1,
    "Section 4.1, preference": 4,
    "Section 4.2": 2,
    "Table 4": 24 + 11,
    "Table 4, COCO 1K R@1 as it came about": 1,
    "Table 5": 6,
    "Section B.2": 2,
    "Table B.2, Avg.": 15,
}
#: Verdicts by paper, without Java.
VERDICTS = {
    "bivlc": {"same": 123, "differs": 4, "unexplained": 0, "no data": 125},
    "eccv-caption": {"same": 391, "differs": 68, "unexplained": 0, "no data": 916},
    "pac-s": {"same": 116, "differs": 1, "unexplained": 0, "no data": 366},
    "winoground": {"same": 444, "differs": 4, "unexplained": 0, "no data": 382},
}


def of_questions(ledger):
    """Those of the papers whose numbers are about quads and choices."""
    return [entry for entry in ledger if entry.paper in ("BiVLC", "Winoground")]


def test_every_printed_number_has_its_entry_and_every_difference_its_reason(ledger):
    for name in all_papers():
        assert by_cell(ledger, name).keys() == printed_cells(name).keys()
    for name, verdicts in VERDICTS.items():
        assert summary(e for e in ledger if e.name == name) == verdicts
    for entry in ledger:
        assert bool(entry.source) == (entry.recomputed is not None) == (entry.verdict is not Verdict.NO_DATA)
        assert entry.reason or entry.verdict is Verdict.SAME
    # A reason whose cell turned out to be the same explains nothing and must go.
    for paper in all_papers().values():
        entries = by_cell(ledger, paper.name)
        for table in paper.tables:
            for row in table.rows:
                for column, cell in zip(table.columns, row.cells, strict=True):
                    if cell.reason:
                        reason = paper.reasons.get(cell.reason, cell.reason)
                        assert reason in entries[table.name, row.name, column.name].reason


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("java"), reason="no Java: install default-jre-headless")
def test_with_java_the_numbers_of_meteor_are_the_same_too(ledger, shared_data, tmp_path):
    pytest.importorskip("pycocoevalcap")
    pairs = zip(save_ledger(tmp_path, shared_data), ledger, strict=True)
    changed = [entry for entry, without in pairs if entry.verdict is not without.verdict]
    assert [(entry.name, entry.verdict) for entry in changed] == [("pac-s", Verdict.SAME)] * 5


def test_exactly_the_known_cells_differ(ledger):
    differing = [e for e in ledger if e.verdict is Verdict.DIFFERS]
    values = {(e.paper, e.table, e.row, e.column): e.recomputed for e in of_questions(tuple(differing))}
    assert values == pytest.approx(DIFFERING, abs=5e-5)
    assert Counter(e.table for e in differing if e.name == "eccv-caption") == ECCV_DIFFERING


def test_numbers_by_hand(ledger, shared_data):
    # Straight from the files, past all readers: CLIP's I2T on BiVLC's swaps, and its SugarCrepe accuracy.
    bivlc = by_cell(ledger, "bivlc")
    with open(shared_data / "bivlc" / "ViT-B-32.csv", newline="", encoding="utf-8") as file:
        swaps = [row["text_score"] == "True" for row in csv.DictReader(file) if row["type"] == "swap"]
    assert bivlc["Table 4", "CLIP", "SWAP I2T"].recomputed == pytest.approx(100 * np.mean(swaps))
    with open(shared_data / "bivlc" / "SUGARCREPE_ViT-B-32.csv", newline="", encoding="utf-8") as file:
        right = [int(row["correct"]) for row in csv.DictReader(file)]
    assert bivlc["Table 2", "CLIP", "SUGARCREPE"].recomputed == pytest.approx(100 * sum(right) / 7512)
    eccv = by_cell(ledger, "eccv-caption")
    source = eccv["Table 3", "CxC", "# positive images"].source
    assert source.startswith("eccv/")
    assert "cxc_image_to_caption.json" in source
    wrong = eccv["Section 3.3 and C.1", "wrong captions", "Filtered out"]
    assert wrong.recomputed == 14 - 3
    assert all(caption in wrong.reason for caption in ("75083", "359139", "605566"))


def test_a_broken_file_is_an_error_that_names_it(shared_data, tmp_path):
    file = winoground_copy(shared_data, tmp_path)
    text = file.read_text(encoding="utf-8")
    file.write_text(text[: len(text) // 2], encoding="utf-8")
    refuses(r"clip\.jsonl", reproduce, error=CounterfoilError, data=tmp_path, papers=["winoground"])


def winoground_copy(shared_data, folder):
    """The tags and CLIP's scores in a folder of their own; returns the score file."""
    (folder / "winoground" / "scores").mkdir(parents=True)
    shutil.copyfile(shared_data / "winoground" / "tags.csv", folder / "winoground" / "tags.csv")
    scores = folder / "winoground" / "scores" / "clip.jsonl"
    shutil.copyfile(shared_data / "winoground" / "scores" / "clip.jsonl", scores)
    return scores


def test_what_is_missing_is_named(tmp_path, monkeypatch, shared_data):
    clip = ("Table 4", "CLIP (ViT-B/32)", "Both Text")
    for data, words in (
        (None, "no folder of data was given; this needs its winoground/scores/clip.jsonl"),
        (tmp_path, "winoground/scores/clip.jsonl is not in the folder of data"),
    ):
        entry = by_cell(reproduce(data=data, papers=["Winoground"]), "winoground")[clip]
        assert (entry.verdict, entry.reason, entry.source) == (Verdict.NO_DATA, words, "")
    # Score files name examples but not their tags: without the tags nothing is guessed.
    (tmp_path / "winoground" / "scores").mkdir(parents=True)
    shutil.copyfile(shared_data / "winoground/scores/clip.jsonl", tmp_path / "winoground/scores/clip.jsonl")
    entry = by_cell(reproduce(data=tmp_path, papers=["Winoground"]), "winoground")[clip]
    assert entry.reason == "winoground/tags.csv is not in the folder of data"
    doubtful = by_cell(reproduce(papers=["bivlc"]), "bivlc")["Table 3", "NEGCLIP", "Ipos2T"]
    assert doubtful.reason.startswith("its outcomes were not published. Doubtful: ")
    # ECCV Caption's files without CxC's, and without the package that has them too.
    monkeypatch.setattr("counterfoil.benchmarks.readers.released_captions.find_spec", lambda name: None)
    shutil.copytree(shared_data / "eccv", tmp_path / "eccv", copy_function=shutil.copyfile)
    for file in (tmp_path / "eccv").glob("cxc_*"):
        file.unlink()
    entries = by_cell(reproduce(data=tmp_path, papers=["ECCV Caption"]), "eccv-caption")
    assert entries["Table 3", "ECCV Caption", "# positive images"].verdict is Verdict.SAME
    lost = entries["Table 3", "CxC", "# positive images"]
    assert lost.reason.startswith("eccv is not complete: the Python package 'eccv_caption' is not installed")


def test_published_names_are_found_wherever_they_lie(tmp_path, shared_data):
    place = tmp_path / "downloads" / "results"
    place.mkdir(parents=True)
    shutil.copyfile(shared_data / "bivlc" / "ViT-B-32.csv", place / "BiVLC_ViT-B-32.csv")
    group = by_cell(reproduce(data=tmp_path, papers=["bivlc"]), "bivlc")["Table 2", "CLIP", "Group"]
    assert (group.verdict, group.basis) == (Verdict.SAME, Basis.DATA)
    rows = files(data=tmp_path, papers=["bivlc"])
    assert len({name for _, name, _ in rows}) == len(rows)
    listed = {name: result for _, name, result in rows if result}
    assert listed == {"bivlc/ViT-B-32.csv": "downloads/results/BiVLC_ViT-B-32.csv"}


def chat_answers(folder, order, answers):
    """Answers of a chat model, one folder per order of the candidates, as published for SugarCrepe."""
    place = folder / "sugar-crepe" / "gpt-4v-results" / order
    place.mkdir(parents=True)
    half = len(answers) // 2
    for name, part in (("add_att", answers[:half]), ("swap_obj", answers[half:])):
        rows = {str(k): {"caption": "a", "correct": answer} for k, answer in enumerate(part)}
        (place / f"gpt4v-{name}.json").write_text(json.dumps(rows))
    return place / "gpt4v-swap_obj.json"


def test_unanswered_counts_as_wrong_orders_weigh_the_same_and_an_accuracy_is_passed_over(tmp_path):
    file = chat_answers(tmp_path, "positive-first", [True, True, False, float("nan")])
    chat_answers(tmp_path, "negative-first", [True, True, True, False])
    file.write_text(json.dumps(json.loads(file.read_text()) | {"accuracy": 0.5}))
    entries = by_cell(reproduce(data=tmp_path, papers=["bivlc"]), "bivlc")
    entry = entries["Section 5.3, chat models", "GPT-4V", "SUGARCREPE"]
    assert entry.recomputed == pytest.approx((50 + 75) / 2)
    assert entry.basis is Basis.DATA


def detector_outputs(folder, lines):
    (folder / "detectors").mkdir()
    text = "\n".join(["text_pred,img_pred,label", *lines])
    (folder / "detectors" / "bivlc_CLIP_baseline.csv").write_text(text, encoding="utf-8")


def test_numbers_of_a_detector(tmp_path):
    # Two questions. The first is right throughout; of the second the natural caption is taken for
    # synthetic, though it looks the more natural, so only image to text goes right.
    detector_outputs(tmp_path, ["0.1,0.2,0", "0.7,0.2,0", "0.9,0.8,1", "0.8,0.9,1"])
    cells = by_cell(reproduce(data=tmp_path, papers=["bivlc"]), "bivlc")
    values = {"Text detection acc": 75, "Img detection acc": 100, "I2T": 100, "T2I": 50, "Group": 50}
    assert {column: cells["Table 5", "CLIP Det", column].recomputed for column in values} == values
    assert cells["Table 5", "CLIP Det", "Img detection acc"].verdict is Verdict.SAME
    # The reason why the paper's 57.00 differs is about 57.30, not about this.
    assert cells["Table 5", "CLIP Det", "Text detection acc"].unexplained


def test_data_that_cannot_be_used_are_an_error_that_names_the_file(tmp_path):
    detector_outputs(tmp_path, ["0.1,0.2,0", "0.7,0.2,0", "0.9,0.8,1"])
    with pytest.raises(DataError, match=r"bivlc_CLIP_baseline\.csv: detector outputs do not come in pairs"):
        reproduce(data=tmp_path, papers=["bivlc"])
    chat_answers(tmp_path / "b", "positive-first", [True, True, "yes", True])
    with pytest.raises(DataError, match=r"gpt4v-swap_obj\.json, '0': no answer; allowed: correct: true"):
        reproduce(data=tmp_path / "b", papers=["bivlc"])


def test_perplexities_come_from_a_run_of_a_language_model(shared_data, tmp_path):
    winoground_copy(shared_data, tmp_path)
    perplexity = np.random.default_rng(8).uniform(20, 400, (400, 2))
    scores = {f"{n}_c{c}_i{i}": -perplexity[n, c] for n, c, i in np.ndindex(400, 2, 2)}
    lines = [json.dumps({"label": label, "score": score}) for label, score in scores.items()]
    (tmp_path / "gpt2.jsonl").write_text("\n".join(lines))
    out, given = tmp_path / "winoground" / "gpt2", f"given:{tmp_path / 'gpt2.jsonl'}"
    cf.evaluate(given, "winoground", data=tmp_path / "winoground", out=out, draws=100, quiet=True)
    entries = by_cell(reproduce(data=tmp_path, papers=["winoground"]), "winoground")
    # All 1,600 pairs of an image and a caption.
    rows = list(map(json.loads, (tmp_path / "winoground/scores/clip.jsonl").read_text().splitlines()))
    pairs = [tuple(map(int, re.findall(r"\d+", row["label"]))) for row in rows]
    r, p = pearsonr([perplexity[n, c] for n, c, _ in pairs], [row["score"] for row in rows])
    clip = "CLIP (ViT-B/32)"
    assert entries["Table 6", clip, "Perplexity Corr."].recomputed == pytest.approx(r)
    assert entries["Table 6", clip, "Perplexity p-value"].recomputed == pytest.approx(p)


def test_papers_are_named_progress_reaches_its_end_and_groups_must_be_there(shared_data):
    seen: list[tuple[str, int, int]] = []
    entries = reproduce(papers=["Winoground"], progress=lambda *step: seen.append(step))
    assert {entry.name for entry in entries} == {"winoground"}
    total = sum(len(table.rows) for table in all_papers()["winoground"].tables)
    assert [done for stage, done, _ in seen if stage == "reproduce winoground"] == list(range(total + 1))
    refuses("did you mean 'winoground'", reproduce, error=UnknownNameError, papers=["winogrund"])
    benchmark, _ = ReleasedFiles(shared_data, {"winoground": ["winoground/tags.csv"]}).questions("winoground")
    refuses(r"no such group; given: Nouns; allowed: .*Object, ", mask, benchmark, ("Nouns",))
    assert mask(benchmark, ("Object", "Both")).sum() == 141 + 26


# Group match rests on the sizes of scores, not on their order alone, and a macro average on groups.
def test_going_through_all_orders_gives_the_chance_that_measures_state():
    for name, measure in contrast.QUAD.items():
        if name != "group_match" and not measure.macro_of:
            assert chance("quad", name).value == pytest.approx(100 * measure.expected)
    assert chance("choice", "accuracy").value == pytest.approx(50)
