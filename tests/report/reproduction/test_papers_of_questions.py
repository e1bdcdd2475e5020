"""The ledger over the released files: what is the same, what differs and why, what is missing."""

import csv
import json
import pickle
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import pearsonr

import counterfoil as cf
from counterfoil.errors import CounterfoilError, DataError, UnknownNameError
from counterfoil.metrics import contrast
from counterfoil.report.reproduction import Basis, Entry, Verdict, all_papers, files, reproduce, summary
from counterfoil.report.reproduction.evidence import ReleasedFiles, mask
from counterfoil.report.reproduction.recipes import chance

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

#: What the shared folder lacks of what the authors released, and rows that nothing was released for.
ABSENT_FILES = {
    "CLIP TROHN-IMG": "CLIP_TROHN-Img.csv",
    "CLIP TROHN-IMG/Det": "_CLIP_TROHN-Img.csv",
    "GPT-4V": "gpt-4v-results/positive-first",
    "UNITER large": "uniter_large.jsonl",
    "ViLLA large": "villa_large.jsonl",
    "ViLLA base": "villa_base.jsonl",
    "ViLBERT base": "vilbert.jsonl",
    "FLAVA Contrastive": "flava_zero_shot.jsonl",
    "VSE++ COCO (VGG)": "vse_coco_vgg_ft.jsonl",
    "VSE++ Flickr30k (ResNet)": "vse_f30k_resnet_ft.jsonl",
    "VSE++ Flickr30k (VGG)": "vse_f30k_vgg_ft.jsonl",
    "VSRN Flickr30k": "vsrn_flickr.jsonl",
}
#: PAC-S asks caption metrics, which takes half a minute; it has tests of its own.
PAPERS = [paper for paper in all_papers().values() if paper.called != "PAC-S"]
UNPUBLISHED = {"Human", "NEGCLIP", "GNM", "Open CapPa", "VQAScore-XL", "VQAScore-XXL"}

#: Rows about BiVLC's annotators that only their answers or payments could confirm.
UNPUBLISHED_RECORDS = {
    "instances after step 3",
    "annotations for agreement",
    "spent on crowdsourcing, in US$",
}


@pytest.fixture(scope="module")
def ledger(shared_data: Path) -> tuple[Entry, ...]:
    """All but PAC-S, made as users make it: without shape checks, which take ten times as long."""
    code = (
        "import pickle, sys; from pathlib import Path; from counterfoil.report.reproduction import reproduce;"
        "sys.stdout.buffer.write(pickle.dumps(reproduce(data=Path(sys.argv[1]), papers=sys.argv[2:])))"
    )
    names = [paper.called for paper in PAPERS]
    command = [sys.executable, "-W", "error", "-c", code, str(shared_data), *names]
    return pickle.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def key(entry: Entry) -> tuple[str, str, str, str]:
    return entry.paper, entry.table, entry.row, entry.column


def of_questions(entries: Iterable[Entry]) -> list[Entry]:
    """Those of the papers whose numbers are about questions; ECCV Caption has tests of its own."""
    return [entry for entry in entries if entry.paper != "ECCV Caption"]


def of(entries: Iterable[Entry], table: str, row: str, column: str) -> Entry:
    (found,) = [e for e in entries if (e.table, e.row, e.column) == (table, row, column)]
    return found


class TestReleasedFiles:
    def test_every_printed_number_has_its_entry(self, ledger: tuple[Entry, ...]) -> None:
        assert len({key(e) for e in ledger}) == len(ledger)
        printed = sum(
            bool(cell.printed)
            for paper in PAPERS
            for table in paper.tables
            for row in table.rows
            for cell in row.cells
        )
        assert len(ledger) == printed
        assert Counter(e.name for e in ledger) == {"bivlc": 252, "eccv-caption": 1375, "winoground": 830}

    def test_exactly_the_known_cells_differ_and_each_says_why(self, ledger: tuple[Entry, ...]) -> None:
        found = {key(e): e.recomputed for e in of_questions(ledger) if e.verdict is Verdict.DIFFERS}
        assert found == pytest.approx(DIFFERING, abs=5e-5)
        assert all(e.reason for e in ledger if e.verdict is Verdict.DIFFERS)

    def test_no_data_exactly_where_files_are_missing(self, ledger: tuple[Entry, ...]) -> None:
        for entry in of_questions(ledger):
            perplexity = entry.column.startswith("Perplexity")
            kappa = entry.table == "Table 7" and entry.column == "Kappa score"
            diwan = entry.printed == "684"
            trohn = (entry.paper, entry.table) == ("BiVLC", "Table 6")
            gone = entry.row in ABSENT_FILES or entry.row in UNPUBLISHED or trohn
            gone = gone or entry.row in UNPUBLISHED_RECORDS
            assert (entry.verdict is Verdict.NO_DATA) == (perplexity or kappa or diwan or gone), key(entry)
            if entry.row in ABSENT_FILES and not perplexity:
                assert ABSENT_FILES[entry.row] in entry.reason
            if entry.verdict is Verdict.NO_DATA:
                assert entry.reason
                assert entry.recomputed is None
            else:
                assert entry.source

    def test_the_count_of_each_table(self, ledger: tuple[Entry, ...]) -> None:
        counts = {
            where: tuple(summary(e for e in ledger if (e.paper, e.table) == where).values())
            for where in dict.fromkeys((e.paper, e.table) for e in of_questions(ledger))
        }
        # Rows at hand x columns: 3 of BiVLC's models and chance; 11 of Winoground's score files (and chance).
        assert counts == {
            ("BiVLC", "Section 3.1"): (2, 0, 0, 0),
            ("BiVLC", "Sections 3.1 and 4, people"): (4, 0, 0, 3),
            ("BiVLC", "Table 1"): (26, 2, 0, 1),
            ("BiVLC", "Table 2"): (3 * 4, 0, 0, 6 * 4),
            ("BiVLC", "Table 3"): (4 * 8, 0, 0, 3 * 8),
            ("BiVLC", "Table 4"): (4 * 9, 0, 0, 6 * 9),
            ("BiVLC", "Table 5"): (5 + 3, 2, 0, 5),
            ("BiVLC", "Section 5.3"): (1, 0, 0, 1),
            ("BiVLC", "Section 5.3, chat models"): (0, 0, 0, 1),
            ("BiVLC", "Table 6"): (0, 0, 0, 7),
            ("BiVLC", "Table 6, total"): (1, 0, 0, 0),
            ("BiVLC", "Table 7"): (1, 0, 0, 5),
            ("Winoground", "Section 3.1"): (3, 0, 0, 0),
            ("Winoground", "Section 4.3"): (1, 0, 0, 0),
            ("Winoground", "Table 1"): (7, 4, 0, 0),
            ("Winoground", "Table 3"): (12 * 3, 0, 0, 9 * 3),
            ("Winoground", "Table 4"): (11 * 15, 0, 0, 9 * 15),
            ("Winoground", "Table 5"): (11 * 9, 0, 0, 9 * 9),
            ("Winoground", "Table 6"): (11 * 2, 0, 0, 20 * 2 + 9 * 2),
            ("Winoground", "Table 7"): (6 * 2, 0, 0, 0),
            ("Winoground", "Appendix A"): (11 * 9, 0, 0, 9 * 9),
        }

    def test_every_reason_beside_a_cell_is_of_use(self, ledger: tuple[Entry, ...]) -> None:
        # A reason whose cell turned out to be the same explains nothing and must go.
        with_reason = {
            (paper.called, table.name, row.name, column.name): cell.reason
            for paper in PAPERS
            for table in paper.tables
            for row in table.rows
            for column, cell in zip(table.columns, row.cells, strict=True)
            if cell.reason
        }
        shown = {key(e): e.reason for e in ledger}
        assert all(reason in shown[cell] for cell, reason in with_reason.items())

    def test_two_numbers_by_hand(self, ledger: tuple[Entry, ...], shared_data: Path) -> None:
        # Straight from the files, past all readers: CLIP's I2T on BiVLC's swaps, and its SugarCrepe accuracy.
        with open(shared_data / "bivlc" / "ViT-B-32.csv", newline="", encoding="utf-8") as file:
            swaps = [row["text_score"] == "True" for row in csv.DictReader(file) if row["type"] == "swap"]
        assert of(ledger, "Table 4", "CLIP", "SWAP I2T").recomputed == pytest.approx(100 * np.mean(swaps))
        with open(shared_data / "bivlc" / "SUGARCREPE_ViT-B-32.csv", newline="", encoding="utf-8") as file:
            right = [int(row["correct"]) for row in csv.DictReader(file)]
        assert of(ledger, "Table 2", "CLIP", "SUGARCREPE").recomputed == pytest.approx(
            100 * sum(right) / 7512
        )

    def test_a_changed_score_is_noticed(self, shared_data: Path, tmp_path: Path) -> None:
        place = winoground_copy(shared_data, tmp_path)
        before = {key(e): e for e in reproduce(data=tmp_path, papers=["winoground"])}
        assert before["Winoground", "Table 3", "CLIP (ViT-B/32)", "Text"].verdict is Verdict.SAME
        # Example 0 is wrong for CLIP in the text score; a high score of its true pairs makes it right.
        lines = [json.loads(line) for line in place.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            if line["label"] in ("0_c0_i0", "0_c1_i1"):
                line["score"] += 100
        place.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
        after = {key(e): e for e in reproduce(data=tmp_path, papers=["winoground"])}
        changed = {name for name in before if before[name].verdict is not after[name].verdict}
        text = after["Winoground", "Table 3", "CLIP (ViT-B/32)", "Text"]
        assert text.recomputed == pytest.approx(31.0)
        assert text.unexplained
        assert key(text) in changed
        assert {name[2] for name in changed} == {"CLIP (ViT-B/32)"}

    @pytest.mark.parametrize(
        "damage",
        [
            lambda text: text[: len(text) // 2],
            lambda text: text.replace('"score": 2', '"score": NaN, "was": 2', 1),
            lambda text: text + text.splitlines()[0],
            lambda text: text.replace('"label": "17_c0_i1"', '"label": "999_c0_i1"', 1),
            lambda text: "",
        ],
        ids=["cut off", "NaN", "a pair twice", "an unknown example", "empty"],
    )
    def test_a_broken_file_is_an_error_that_names_it(self, damage, shared_data: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
        place = winoground_copy(shared_data, tmp_path)
        place.write_text(damage(place.read_text(encoding="utf-8")), encoding="utf-8")
        with pytest.raises(CounterfoilError, match=r"clip\.jsonl"):
            reproduce(data=tmp_path, papers=["winoground"])


def winoground_copy(shared_data: Path, folder: Path) -> Path:
    """The tags and CLIP's scores in a folder of their own; returns the score file."""
    (folder / "winoground" / "scores").mkdir(parents=True)
    shutil.copyfile(shared_data / "winoground" / "tags.csv", folder / "winoground" / "tags.csv")
    scores = folder / "winoground" / "scores" / "clip.jsonl"
    shutil.copyfile(shared_data / "winoground" / "scores" / "clip.jsonl", scores)
    return scores


class TestNoData:
    def test_only_what_needs_no_file_is_recomputed(self) -> None:
        entries = reproduce(papers=["bivlc", "winoground"])
        computed = Counter((e.paper, e.table, e.row) for e in entries if e.verdict is not Verdict.NO_DATA)
        assert computed == {
            **{
                ("BiVLC", "Sections 3.1 and 4, people", row): 1
                for row in (
                    "instances removed in steps 3 and 4, in per cent",
                    "annotators of the human baseline",
                    "queries of the human baseline",
                    "questions of an annotator",
                )
            },
            ("BiVLC", "Table 2", "Random"): 4,
            ("BiVLC", "Table 3", "Random"): 8,
            ("BiVLC", "Table 4", "Random"): 9,
            ("BiVLC", "Table 5", "Random"): 5,
            ("BiVLC", "Table 6, total", "# instances"): 1,
            ("BiVLC", "Table 7", "mean of the pairs"): 1,
            ("Winoground", "Table 3", "Random Chance"): 3,
            **{
                ("Winoground", "Table 7", f"Pretraining {size}, {score} score"): 2
                for size in ("images", "captions")
                for score in ("Text", "Image", "Group")
            },
        }
        assert all(e.verdict is Verdict.SAME for e in entries if e.verdict is not Verdict.NO_DATA)

    def test_what_is_missing_is_named(self, tmp_path: Path) -> None:
        for data, words in (
            (None, "no folder of data was given; this needs its winoground/scores/clip.jsonl"),
            (tmp_path, "winoground/scores/clip.jsonl is not in the folder of data"),
        ):
            entry = of(reproduce(data=data, papers=["Winoground"]), "Table 4", "CLIP (ViT-B/32)", "Both Text")
            assert (entry.verdict, entry.reason, entry.source) == (Verdict.NO_DATA, words, "")

    def test_doubt_is_kept_beside_what_is_missing(self) -> None:
        entry = of(reproduce(papers=["bivlc"]), "Table 3", "NEGCLIP", "Ipos2T")
        assert entry.reason.startswith("its outcomes were not published. Doubtful: ")

    def test_scores_without_questions(self, tmp_path: Path) -> None:
        # Score files name examples but not their tags: without the tags nothing is guessed.
        write_scores(tmp_path, np.random.default_rng(0).normal(size=(400, 2, 2)))
        entry = of(reproduce(data=tmp_path, papers=["Winoground"]), "Table 3", "CLIP (ViT-B/32)", "Text")
        assert entry.reason == "winoground/tags.csv is not in the folder of data"

    def test_what_needs_no_file_is_derived(self) -> None:
        entries = reproduce(papers=["bivlc", "winoground"])
        assert {e.basis for e in entries if e.verdict is not Verdict.NO_DATA} == {Basis.DERIVED}
        assert {e.basis for e in entries if e.verdict is Verdict.NO_DATA} == {Basis.NONE}


class TestFiles:
    def test_published_names_are_found_wherever_they_lie(self, tmp_path: Path, shared_data: Path) -> None:
        place = tmp_path / "downloads" / "results"
        place.mkdir(parents=True)
        shutil.copyfile(shared_data / "bivlc" / "ViT-B-32.csv", place / "BiVLC_ViT-B-32.csv")
        entries = reproduce(data=tmp_path, papers=["bivlc"])
        group = of(entries, "Table 2", "CLIP", "Group")
        assert (group.verdict, group.basis) == (Verdict.SAME, Basis.DATA)
        listed = {name: found for _, name, found in files(data=tmp_path, papers=["bivlc"]) if found}
        assert listed == {"bivlc/ViT-B-32.csv": "downloads/results/BiVLC_ViT-B-32.csv"}

    def test_two_files_of_one_published_name_are_refused(self, tmp_path: Path) -> None:
        for folder in ("a", "b"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "BiVLC_ViT-B-32.csv").write_text("x\n1\n")
        with pytest.raises(DataError, match=r"two files are called BiVLC_ViT-B-32\.csv; given: a/.* and b/"):
            reproduce(data=tmp_path, papers=["bivlc"])

    def test_every_file_of_the_shared_data_is_listed_once(self, shared_data: Path) -> None:
        rows = files(data=shared_data)
        assert len({(paper, name) for paper, name, _ in rows}) == len(rows)
        there = {found for _, _, found in rows}
        assert {"bivlc/ViT-B-32.csv", "winoground/scores/clip.jsonl", "winoground/tags.csv"} <= there
        assert all((shared_data / found).exists() for found in there if found)


class TestChatModel:
    """Answers of a chat model, one folder per order of the candidates, as published for SugarCrepe."""

    def write(self, folder: Path, order: str, answers: list[object]) -> None:
        place = folder / "sugar-crepe" / "gpt-4v-results" / order
        place.mkdir(parents=True)
        half = len(answers) // 2
        for name, part in (("add_att", answers[:half]), ("swap_obj", answers[half:])):
            rows = {str(k): {"caption": "a", "correct": answer} for k, answer in enumerate(part)}
            (place / f"gpt4v-{name}.json").write_text(json.dumps(rows))

    def test_unanswered_counts_as_wrong_and_orders_weigh_the_same(self, tmp_path: Path) -> None:
        self.write(tmp_path, "positive-first", [True, True, False, float("nan")])
        self.write(tmp_path, "negative-first", [True, True, True, False])
        entry = of(
            reproduce(data=tmp_path, papers=["bivlc"]), "Section 5.3, chat models", "GPT-4V", "SUGARCREPE"
        )
        assert entry.recomputed == pytest.approx((50 + 75) / 2)
        assert entry.basis is Basis.DATA

    def test_an_accuracy_beside_the_answers_is_passed_over(self, tmp_path: Path) -> None:
        self.write(tmp_path, "positive-first", [True, True, False, float("nan")])
        self.write(tmp_path, "negative-first", [True, True, True, False])
        file = tmp_path / "sugar-crepe" / "gpt-4v-results" / "positive-first" / "gpt4v-swap_obj.json"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"accuracy": 0.5}))
        entry = of(
            reproduce(data=tmp_path, papers=["bivlc"]), "Section 5.3, chat models", "GPT-4V", "SUGARCREPE"
        )
        assert entry.recomputed == pytest.approx((50 + 75) / 2)

    def test_what_is_no_answer_is_named(self, tmp_path: Path) -> None:
        self.write(tmp_path, "positive-first", [True, True, "yes", True])
        with pytest.raises(DataError, match=r"gpt4v-swap_obj\.json, '0': no answer; allowed: correct: true"):
            reproduce(data=tmp_path, papers=["bivlc"])


class TestMadeUpScores:
    """A whole run without released files: tags and scores made here, the numbers checked against NumPy."""

    @pytest.fixture
    def made(self, tmp_path: Path) -> tuple[Path, np.ndarray]:
        scores = np.random.default_rng(7).normal(size=(400, 2, 2))
        write_tags(tmp_path)
        write_scores(tmp_path, scores)
        return tmp_path, scores

    def test_numbers(self, made: tuple[Path, np.ndarray]) -> None:
        folder, s = made
        entries = reproduce(data=folder, papers=["winoground"])
        text = (s[:, 0, 0] > s[:, 1, 0]) & (s[:, 1, 1] > s[:, 0, 1])
        image = (s[:, 0, 0] > s[:, 0, 1]) & (s[:, 1, 1] > s[:, 1, 0])
        clip = "CLIP (ViT-B/32)"
        got = of(entries, "Table 3", clip, "Text")
        assert got.recomputed == pytest.approx(100 * text.mean())
        assert got.source == "winoground/scores/clip.jsonl"
        assert of(entries, "Table 4", clip, "Both Image").recomputed == pytest.approx(
            100 * image[374:].mean()
        )
        assert of(entries, "Table 4", clip, "2 Main Preds Group").recomputed == pytest.approx(
            100 * (text & image)[292:].mean()
        )
        length = of(entries, "Table 6", clip, "Caption Length Corr.")
        words = (np.arange(400) % 7 + 3 + np.arange(400) % 5 + 3) / 2
        assert length.recomputed == pytest.approx(pearsonr(words, text & image).statistic)
        assert of(entries, "Table 1", "1 Main Pred", "Count").recomputed == 292
        assert of(entries, "Table 1", "Symbolic", "Count").recomputed == 41
        low, high = (of(entries, "Appendix A", clip, f"Text, {end}").recomputed for end in ("low", "high"))
        assert low is not None
        assert high is not None
        assert (low + high) / 2 == pytest.approx(100 * text.mean())

    def test_perplexities_come_from_a_run_of_a_language_model(self, made: tuple[Path, np.ndarray]) -> None:
        folder, scores = made
        perplexity = np.random.default_rng(8).uniform(20, 400, (400, 2))
        lines = [
            json.dumps({"label": f"{n}_c{c}_i{i}", "score": -perplexity[n, c]})
            for n, c, i in np.ndindex(400, 2, 2)
        ]
        (folder / "gpt2.jsonl").write_text("\n".join(lines))
        out = folder / "winoground" / "gpt2"
        given = f"given:{folder / 'gpt2.jsonl'}"
        cf.evaluate(given, "winoground", data=folder / "winoground", out=out, draws=100, quiet=True)
        entries = reproduce(data=folder, papers=["winoground"])
        clip = "CLIP (ViT-B/32)"
        # All 1,600 pairs of an image and a caption.
        found = pearsonr(np.repeat(perplexity[:, :, None], 2, axis=2).ravel(), scores.ravel())
        assert of(entries, "Table 6", clip, "Perplexity Corr.").recomputed == pytest.approx(found.statistic)
        assert of(entries, "Table 6", clip, "Perplexity p-value").recomputed == pytest.approx(found.pvalue)

    def test_what_differs_without_a_known_reason_says_so(self, made: tuple[Path, np.ndarray]) -> None:
        entries = reproduce(data=made[0], papers=["winoground"])
        assert of(entries, "Table 3", "CLIP (ViT-B/32)", "Text").unexplained
        assert summary(entries)["unexplained"] > 20


def write_tags(folder: Path) -> None:
    """400 rows with the counts of Winoground's card: 141 + 233 + 26, 292 + 108, visual tags as released."""
    collapsed = ["Object"] * 141 + ["Relation"] * 233 + ["Both"] * 26
    # FORMATS section 3: these make 41, 24 and 31 examples that contain Symbolic, Pragmatics and Series.
    visual = (
        ["Symbolic"] * 28
        + ["Pragmatics"] * 17
        + ["Series"] * 23
        + ["Symbolic, Series"] * 5
        + ["Symbolic, Pragmatics"] * 5
        + ["Symbolic, Morpheme-Level"] * 3
        + ["Pragmatics, Series"] * 2
        + ["Morpheme-Level, Series"]
        + ["Morpheme-Level"] * 17
        + [""] * 299
    )
    (folder / "winoground").mkdir(exist_ok=True)
    with open(folder / "winoground" / "tags.csv", "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(
            [
                "id",
                "tag",
                "secondary_tag",
                "collapsed_tag",
                "num_main_preds",
                "caption_0_words",
                "caption_1_words",
            ]
        )
        for i in range(400):
            rows.writerow([i, "Noun", visual[i], collapsed[i], 1 if i < 292 else 2, i % 7 + 3, i % 5 + 3])


def write_scores(folder: Path, scores: np.ndarray) -> None:
    (folder / "winoground" / "scores").mkdir(parents=True)
    lines = [
        json.dumps({"label": f"{q}_c{c}_i{i}", "score": float(scores[q, c, i])})
        for q in range(len(scores))
        for c in (0, 1)
        for i in (0, 1)
    ]
    (folder / "winoground" / "scores" / "clip.jsonl").write_text("\n".join(lines), encoding="utf-8")


class TestMadeUpDetector:
    def write(self, folder: Path, lines: Iterable[str]) -> None:
        (folder / "detectors").mkdir()
        text = "\n".join(["text_pred,img_pred,label", *lines])
        (folder / "detectors" / "bivlc_CLIP_baseline.csv").write_text(text, encoding="utf-8")

    def test_numbers(self, tmp_path: Path) -> None:
        # Two questions. The first is right throughout; of the second the natural caption is taken for
        # synthetic, though it looks the more natural, so only image to text goes right.
        self.write(tmp_path, ["0.1,0.2,0", "0.7,0.2,0", "0.9,0.8,1", "0.8,0.9,1"])
        entries = reproduce(data=tmp_path, papers=["bivlc"])
        found = {e.column: e.recomputed for e in entries if e.table == "Table 5" and e.row == "CLIP Det"}
        assert found == {
            "Text detection acc": 75.0,
            "Img detection acc": 100.0,
            "I2T": 100.0,
            "T2I": 50.0,
            "Group": 50.0,
        }
        assert of(entries, "Table 5", "CLIP Det", "Img detection acc").verdict is Verdict.SAME
        # The reason why the paper's 57.00 differs is about 57.30, not about this.
        assert of(entries, "Table 5", "CLIP Det", "Text detection acc").unexplained

    def test_outputs_that_do_not_pair_are_an_error_that_names_the_file(self, tmp_path: Path) -> None:
        self.write(tmp_path, ["0.1,0.2,0", "0.7,0.2,0", "0.9,0.8,1"])
        with pytest.raises(
            DataError, match=r"bivlc_CLIP_baseline\.csv: detector outputs do not come in pairs"
        ):
            reproduce(data=tmp_path, papers=["bivlc"])


class TestAsking:
    def test_papers_by_name_and_number(self) -> None:
        assert {e.paper for e in reproduce(papers=["bivlc"])} == {"BiVLC"}
        assert {e.name for e in reproduce(papers=["Winoground"])} == {"winoground"}
        with pytest.raises(
            UnknownNameError, match=r"unknown paper; given: winogrund; .* did you mean 'winoground'"
        ):
            reproduce(papers=["winogrund"])

    def test_progress_reaches_its_end(self) -> None:
        seen: list[tuple[str, int, int]] = []
        reproduce(progress=lambda *told: seen.append(told))
        rows = {paper.name: sum(len(table.rows) for table in paper.tables) for paper in all_papers().values()}
        for name, total in rows.items():
            assert [done for stage, done, _ in seen if stage == f"reproduce {name}"] == list(range(total + 1))

    def test_a_group_that_is_not_there_is_an_error(self, tmp_path: Path) -> None:
        write_tags(tmp_path)
        benchmark, _ = ReleasedFiles(tmp_path, {"winoground": ["winoground/tags.csv"]}).questions(
            "winoground"
        )
        with pytest.raises(DataError, match="no such group; given: Nouns; allowed: Object, "):
            mask(benchmark, ("Nouns",))
        assert mask(benchmark, ("Object", "Both")).sum() == 141 + 26


# Group match rests on the sizes of scores, not on their order alone, and a macro average on groups.
@pytest.mark.parametrize(
    "measure",
    [name for name, each in contrast.QUAD.items() if name != "group_match" and not each.macro_of],
)
def test_going_through_all_orders_gives_the_chance_that_measures_state(measure: str) -> None:
    assert chance("quad", measure).value == pytest.approx(100 * contrast.QUAD[measure].expected)


def test_chance_of_a_pair() -> None:
    assert chance("choice", "accuracy").value == pytest.approx(50)
    assert len(list(permutations(range(4)))) == 24
