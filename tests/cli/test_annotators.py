"""Pools, bias and preferences from the command line, from files in to files out."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from counterfoil.data import Benchmark, Caption, Card, Image
from counterfoil.data.folder import save
from counterfoil.data.questions import Gallery, Search
from counterfoil.data.tables import read_table
from counterfoil.engine.blocks import Matrix
from counterfoil.engine.gallery import rank
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import save_run
from counterfoil.metrics.ranks import Positives

IMAGES, PER = 40, 3
NAMES = ("one", "two", "three")


@dataclass(frozen=True)
class World:
    """Images and captions as points; who matches whom is known, models see points with noise."""

    folder: Path
    true: np.ndarray
    scores: dict[str, np.ndarray]
    benchmark: Benchmark

    def files(self, *names: str) -> list[Path]:
        return [self.folder / f"{name}.npz" for name in names or NAMES]

    def run(self, name: str, *, top: int = 50, benchmark: Benchmark | None = None) -> Path:
        """A run of a model over the benchmark, or another of the same items, in a folder."""
        benchmark = benchmark or self.benchmark
        answers = rank([benchmark], Matrix(self.scores[name]), top=top)[0]
        result = evaluate(benchmark, answers, scorer=name, draws=100)
        folder = self.folder / "runs" / name / benchmark.name
        save_run(folder, benchmark, answers, result, {})
        return folder


def image_id(i: int) -> str:
    return str(100 + i)


@pytest.fixture
def world(tmp_path: Path) -> World:
    rng = np.random.default_rng(0)
    image = rng.normal(size=(IMAGES, 6))
    caption = np.repeat(image, PER, axis=0) + 0.6 * rng.normal(size=(IMAGES * PER, 6))
    unit = [points / np.linalg.norm(points, axis=1, keepdims=True) for points in (image, caption)]
    scores = {}
    for name in NAMES:
        seen = [points + 0.6 * rng.normal(size=points.shape) for points in (image, caption)]
        seen = [points / np.linalg.norm(points, axis=1, keepdims=True) for points in seen]
        np.savez(
            tmp_path / f"{name}.npz",
            images=seen[0],
            captions=seen[1],
            image_ids=np.arange(100, 100 + IMAGES),
            caption_ids=np.arange(IMAGES * PER),
        )
        scores[name] = seen[0] @ seen[1].T
    owners = np.repeat(np.arange(IMAGES), PER)
    benchmark = Benchmark(
        Card(name="mine", title="Mine", form="gallery", measures=("recall_at_1",)),
        tuple(Image(image_id(i)) for i in range(IMAGES)),
        tuple(Caption(str(c), f'words, of "{c}"') for c in range(IMAGES * PER)),
        Gallery(
            (*(f"i2t/{image_id(i)}" for i in range(IMAGES)), *(f"t2i/{c}" for c in range(IMAGES * PER))),
            i2t=Search(
                np.arange(IMAGES), Positives.of([[PER * i + j for j in range(PER)] for i in range(IMAGES)])
            ),
            t2i=Search(np.arange(IMAGES * PER), Positives.of([[int(o)] for o in owners])),
            owners=owners,
            n_images=IMAGES,
        ),
    )
    return World(tmp_path, unit[0] @ unit[1].T, scores, benchmark)


def judged(world: World, pool: Path, *, words: bool = True) -> Path:
    """The pool with the answers of somebody who knows the truth."""
    table = read_table(pool)
    names = list(table.columns)
    path = world.folder / "judged.csv"
    lines = [",".join([*(n for n in names if n != "text"), "answer" if words else "gain"])]
    for row in range(len(table)):
        near = world.true[int(table["image"][row]) - 100, int(table["caption"][row])]
        gain = 1 if near > 0.8 else 0.5 if near > 0.6 else 0
        said = {1: "100% YES", 0.5: "Partially YES, but", 0: "Mostly NO, because"}[gain]
        cells = [str(table[n][row]) for n in names if n != "text"]
        lines.append(",".join([*cells, said.replace(",", "") if words else str(gain)]))
    path.write_text("\n".join(lines))
    return path


def first(scores: np.ndarray, k: int) -> np.ndarray:
    return np.argsort(-scores, axis=1, kind="stable")[:, :k]


def test_a_pool_is_the_union_of_first_items(counterfoil, world: World) -> None:
    out, summary = world.folder / "pool.csv", world.folder / "pool.json"
    said = counterfoil("pool", *world.files(), "--k", 4, "--out", out, "--json", summary)
    assert said.code == 0, said.err
    table = read_table(out)
    expected = {}
    for way in ("i2t", "t2i"):
        for model in NAMES:
            scores = world.scores[model] if way == "i2t" else world.scores[model].T
            for query, row in enumerate(first(scores, 4).tolist()):
                for place, item in enumerate(row, start=1):
                    pair = (image_id(query), str(item)) if way == "i2t" else (image_id(item), str(query))
                    expected.setdefault((way, *pair), {})[model] = place
    found = {
        (way, image, caption): {
            m: int(table[f"place:{m}"][row]) for m in NAMES if table[f"place:{m}"][row] != "0"
        }
        for row, (way, image, caption) in enumerate(
            zip(table["direction"], table["image"], table["caption"], strict=True)
        )
    }
    assert found == expected
    assert len(table) == len(expected)
    facts = json.loads(summary.read_text())
    assert facts["rows"] == len(expected)
    pairs = {key[1:] for key in expected}
    assert facts["pairs"] == len(pairs) == len(set(table["pair"]))
    assert facts["proposals"] == 4 * 3 * (IMAGES + IMAGES * PER)
    assert facts["yield"]["3"][3] == len(expected)
    assert facts["by_model"]["one"]["new"] == facts["by_model"]["one"]["proposed"] == 4 * IMAGES * (1 + PER)
    assert facts["tasks"]["number"] == -(-len(pairs) // 18)
    assert facts["tasks"]["cost"] == pytest.approx(1.4 * facts["tasks"]["number"])
    assert (
        f"{len(pairs):,} pairs to verify: the first 4 of 3 models for 40 images and 120 captions" in said.out
    )


def test_runs_embeddings_and_similarities_pool_alike(counterfoil, world: World) -> None:
    # The same model as a similarity, with items in another order.
    turned = (
        np.random.default_rng(1).permutation(IMAGES),
        np.random.default_rng(2).permutation(IMAGES * PER),
    )
    np.save(world.folder / "three.npy", world.scores["three"][np.ix_(*turned)])
    ids = world.folder / "ids.npz"
    np.savez(ids, image_ids=100 + turned[0], caption_ids=turned[1])
    runs = [world.run("one"), world.run("two")]
    tables = []
    for number, sources in enumerate((world.files(), [*runs, world.folder / "three.npy"])):
        out = world.folder / f"pool{number}.parquet"
        said = counterfoil("pool", *sources, "--out", out, "--ids", ids, "-q")
        assert said.code == 0, said.err
        tables.append(read_table(out))
    assert [c for c in tables[1].columns if c != "text"] == list(tables[0].columns)
    for name, cells in tables[0].columns.items():
        assert list(cells) == list(tables[1][name])
    assert tables[1]["text"][0] == f'words, of "{tables[1]["caption"][0]}"'


def test_queries_of_ones_own(counterfoil, world: World) -> None:
    chosen, out = world.folder / "queries.txt", world.folder / "pool.csv"
    chosen.write_text("i2t/103\n7\n\nt2i/101\n7\n")
    said = counterfoil("pool", *world.files(), "--queries", chosen, "--out", out)
    assert said.code == 0, said.err
    table = read_table(out)
    assert set(zip(table["direction"], table["query"], strict=True)) == {
        ("i2t", "103"),
        ("t2i", "7"),
        ("t2i", "101"),
    }
    asked = world.folder / "queries.csv"
    asked.write_text("direction,query\ni2t,103\nt2i,103\n")
    said = counterfoil("pool", *world.files(), "--queries", asked, "--out", out)
    assert said.code == 0, said.err
    assert "for 1 images and 1 captions" in said.out
    said = counterfoil("pool", *world.files(), "--queries", asked, "--direction", "t2i", "--out", out)
    assert "queries that nobody knows; given: 1 of them, such as 103; allowed: ids of captions" in said.err


def test_of_several_galleries_of_a_model_one_is_taken(counterfoil, world: World) -> None:
    half = replace(world.benchmark, card=world.benchmark.card.model_copy(update={"name": "half"}))
    half = half.select(np.arange(len(half)) % 2 == 0)
    for name in ("one", "two"):
        world.run(name)
        world.run(name, benchmark=half)
    runs = world.folder / "runs"
    said = counterfoil("pool", runs)
    assert said.code == 2
    assert (
        "one: a model has runs of several galleries; given: half, mine; name one, as in RUN/half" in said.err
    )
    chosen = world.folder / "queries.txt"
    chosen.write_text("i2t/101\n")
    # Of `half`, image 101 is no query.
    assert "i2t/101" not in half.questions.ids
    assert counterfoil("pool", runs, "--queries", chosen).code == 0
    said = counterfoil("pool", runs / "one" / "half", "--queries", chosen)
    assert "queries that a model was not asked; given: 1 of 1, such as 101" in said.err


def test_known_pairs_are_left_out(counterfoil, world: World) -> None:
    run, out = world.run("one"), world.folder / "pool.csv"
    said = counterfoil("pool", run, *world.files("two"), "--exclude-known", "--out", out)
    assert said.code == 0, said.err
    table = read_table(out)
    own = {(image_id(i), str(PER * i + j)) for i in range(IMAGES) for j in range(PER)}
    assert not own & set(zip(table["image"], table["caption"], strict=True))
    # By hand: rows of both directions that are right and among the first five of a model.
    known = 0
    for scores in (lambda m: world.scores[m], lambda m: world.scores[m].T):
        for query in range(len(scores("one"))):
            items = {i for m in ("one", "two") for i in first(scores(m), 5)[query].tolist()}
            pairs = {
                (image_id(query), str(i)) if scores("one").shape[0] == IMAGES else (image_id(i), str(query))
                for i in items
            }
            known += len(pairs & own)
    assert f"{known:,} more were left out, known to be right" in said.out
    said = counterfoil("pool", *world.files(), "--exclude-known")
    assert (said.code, "--exclude-known needs a run" in said.err) == (2, True)


def test_bias_by_hand(counterfoil, world: World) -> None:
    pool, found = world.folder / "pool.csv", world.folder / "bias.json"
    assert counterfoil("pool", *world.files(), "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    said = counterfoil(
        "bias", *world.files(), "--judgements", answers, "--draws", 200, "--json", found,
        "--plot", world.folder / "bias.png", "--html", world.folder / "bias.html",
    )  # fmt: skip
    assert said.code == 0, said.err
    facts = json.loads(found.read_text())
    gains = np.where(world.true > 0.8, 1.0, np.where(world.true > 0.6, 0.5, 0.0)).T
    tops = {m: first(world.scores[m].T, 20) for m in NAMES}
    for annotators in (("one",), ("one", "three"), NAMES):
        for model in NAMES:
            recall, precision = [], []
            for query in range(IMAGES * PER):
                right = {i for m in annotators for i in tops[m][query, :5].tolist() if gains[query, i] > 0}
                if right:
                    got = [gains[query, i] if i in right else 0.0 for i in tops[model][query, : len(right)]]
                    recall.append(got[0])
                    precision.append(sum(got) / len(right))
            name = "+".join(annotators)
            for measure, values in (("graded_recall_at_1", recall), ("graded_r_precision", precision)):
                entry = facts["measures"][f"t2i_{measure}"]["annotators"][name]
                assert entry["performance"][model] == pytest.approx(np.mean(values))
                assert entry["queries"] == len(values)
    measure = facts["measures"]["t2i_graded_recall_at_1"]
    whole = measure["annotators"]["one+two+three"]["performance"]
    alone = measure["annotators"]["two"]
    off = {m: abs(alone["performance"][m] - whole[m]) for m in NAMES}
    assert alone["bias"] == pytest.approx(sum(off.values()) / 3)
    assert alone["self_bias"] == pytest.approx(off["two"])
    assert alone["non_self_bias"] == pytest.approx((off["one"] + off["three"]) / 2)
    assert measure["by_number"]["bias"]["1"] == pytest.approx(
        np.mean([measure["annotators"][m]["bias"] for m in NAMES])
    )
    assert "Bias in points: text to image, graded R@1" in said.out
    assert "intervals take each query by itself" in said.err
    assert (world.folder / "bias.png").stat().st_size > 10_000
    page = (world.folder / "bias.html").read_text()
    assert "Text to image, graded R@1" in page
    assert f"{100 * alone['bias']:.2f}" in page


def test_places_in_the_table_say_who_proposed(counterfoil, world: World) -> None:
    pool = world.folder / "pool.csv"
    assert counterfoil("pool", *world.files(), "--k", 6, "--out", pool, "-q").code == 0
    answers = judged(world, pool, words=False)
    texts = []
    for name, options in (("a", []), ("b", ["--k", 6]), ("c", ["--k", 2])):
        out = world.folder / f"{name}.json"
        said = counterfoil(
            "bias", *world.files(), "--judgements", answers, "--json", out, "--draws", 100, *options
        )
        assert said.code == 0, said.err
        texts.append(out.read_text())
    assert texts[0] == texts[1] != texts[2]
    # Without those columns the models' own first items are the proposals: the same ones.
    rows = [line.split(",") for line in answers.read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if not name.startswith("place:")]
    bare = world.folder / "bare.csv"
    bare.write_text("\n".join(",".join(row[i] for i in kept) for row in rows))
    out = world.folder / "d.json"
    said = counterfoil("bias", *world.files(), "--judgements", bare, "--k", 6, "--json", out, "--draws", 100)
    assert said.code == 0, said.err
    assert out.read_text() == texts[0]
    only = counterfoil("bias", *world.files(), "--judgements", bare, "--direction", "i2t", "--draws", 100)
    assert "image to text" in only.out
    assert "text to image" not in only.out
    said = counterfoil("bias", *world.files(), "--judgements", bare, "--k", 9, "--draws", 100)
    assert "proposals were never judged and count as wrong" in said.err
    more = counterfoil("bias", *world.files("one", "two"), world.folder / "one.npz", "--judgements", bare)
    assert (more.code, "two models have one name; given: one" in more.err) == (2, True)


def test_benchmarks_against_judgements(counterfoil, world: World) -> None:
    pool, folder, found = world.folder / "pool.csv", world.folder / "benchmark", world.folder / "bias.json"
    save(world.benchmark, folder)
    runs = [world.run(name) for name in NAMES]
    assert counterfoil("pool", *runs, "--direction", "t2i", "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    said = counterfoil(
        "bias", *runs, "--judgements", answers, "--positives", folder, "--json", found, "--draws", 100
    )
    assert said.code == 0, said.err
    facts = json.loads(found.read_text())
    pooled = [set() for _ in range(IMAGES * PER)]
    for m in NAMES:
        for query, row in enumerate(first(world.scores[m].T, 5).tolist()):
            pooled[query] |= set(row)
    precision, recall = [], []
    for query, judged_items in enumerate(pooled):
        accepted = {i for i in judged_items if world.true[i, query] > 0.6}
        if query // PER in judged_items:
            precision.append(query // PER in accepted)
            if accepted:
                recall.append((query // PER in accepted) / len(accepted))
    entry = facts["positives"]["t2i"]["mine"]
    assert entry["queries"] == len(precision)
    assert entry["precision"]["value"] == pytest.approx(np.mean(precision))
    assert entry["recall"]["value"] == pytest.approx(np.mean(recall))
    assert facts["multiplicity"]["t2i"]["mine"]["total"] == IMAGES * PER
    accepted = sum(world.true[i, query] > 0.6 for query, items in enumerate(pooled) for i in items)
    assert facts["multiplicity"]["t2i"]["judgements"]["total"] == accepted
    assert f"×{accepted / (IMAGES * PER):.2f}" in said.out
    assert "those of one image together" in facts["interval"]["method"]


def test_table_3_of_p002_from_judged_queries(counterfoil, tmp_path: Path, shared_data: Path) -> None:
    """Right answers of COCO, CxC and ECCV Caption over ECCV Caption's captions: 1,332, 1,895 and 11,279."""
    folder = shared_data / "eccv"
    ids = np.load(folder / "coco_test_ids.npy")
    owner = json.loads((folder / "original_caption_to_image.json").read_text())
    images = list(dict.fromkeys(owner[str(c)][0] for c in ids.tolist()))
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        np.savez(
            tmp_path / f"{name}.npz",
            images=rng.normal(size=(5000, 3)).astype(np.float32),
            captions=rng.normal(size=(25000, 3)).astype(np.float32),
            image_ids=np.array(images),
            caption_ids=ids,
        )
    right = json.loads((folder / "eccv_caption_to_image.json").read_text())
    rows = [f"t2i,{i},{query},1" for query, items in right.items() for i in items]
    answers, found = tmp_path / "judged.csv", tmp_path / "bias.json"
    answers.write_text("\n".join(["direction,image,caption,gain", *rows]))
    wanted = [part for name in ("coco-5k", "cxc", "eccv") for part in ("--positives", name)]
    said = counterfoil(
        "bias", tmp_path / "a.npz", tmp_path / "b.npz", "--judgements", answers, *wanted, "--data", folder,
        "--k", 3000, "--measure", "recall_at_1", "--json", found, "--draws", 100,
    )  # fmt: skip
    assert said.code == 0, said.err
    facts = json.loads(found.read_text())
    totals = {name: entry["total"] for name, entry in facts["multiplicity"]["t2i"].items()}
    assert totals == {"coco-5k": 1332, "cxc": 1895, "eccv": 11279, "judgements": 11279}
    assert "×8.47" in said.out
    assert facts["positives"]["t2i"]["eccv"]["recall"]["value"] == 1


def test_preferences_of_p002(counterfoil, tmp_path: Path) -> None:
    """Table D.1: the printed votes give the printed strengths, to C, D, A, B, E in that order."""
    votes = tmp_path / "votes.csv"
    votes.write_text(
        "ranking,A,B,C,D,E\nA,0,231,66,111,316\nB,89,0,21,79,328\nC,254,299,0,273,343\n"
        "D,185,217,23,0,287\nE,28,16,1,9,24\n"
    )
    found, plot = tmp_path / "strengths.json", tmp_path / "strengths.svg"
    said = counterfoil("preferences", votes, "--json", found, "--plot", plot, "--draws", 500)
    assert said.code == 0, said.err
    assert "order: C > D > A > B > E" in said.out
    facts = json.loads(found.read_text())
    assert {name: round(entry["value"], 2) for name, entry in facts["strengths"].items()} == {
        "C": 70.85,
        "D": 13.15,
        "A": 10.66,
        "B": 4.89,
        "E": 0.44,
    }
    assert "<svg" in plot.read_text()
    printed = counterfoil("preferences", votes, "--json", "-", "--draws", 500)
    assert json.loads(printed.out) == facts


def bad(world: World) -> dict[str, tuple[list[object], str]]:
    folder = world.folder
    plain = folder / "plain.npz"
    np.savez(plain, images=np.ones((3, 2)), captions=np.ones((4, 2)))
    other = folder / "other.npz"
    np.savez(
        other,
        images=np.ones((3, 2)),
        captions=np.ones((2, 2)),
        image_ids=[100, 101, 5000],
        caption_ids=[0, 1],
    )
    run = world.run("two", top=4)
    (folder / "few.txt").write_text("5\nnobody\nnothing\n")
    (folder / "empty.txt").write_text("\n")
    (folder / "both.txt").write_text("103\n")
    some = "direction,image,caption,gain\n"
    (folder / "stray.csv").write_text(f"{some}t2i,999,5,1\n")
    (folder / "lost.csv").write_text(f"{some}t2i,100,5000,1\n")
    (folder / "no.csv").write_text(f"{some}t2i,100,5,0\n")
    (folder / "half.csv").write_text("direction,image,caption,gain,place:one\nt2i,100,5,1,1\n")
    one, two = world.files("one", "two")
    return {
        "no file": (["pool", folder / "none.npz"], "none.npz: no such file or folder; allowed: a run folder"),
        "no lists": (["pool", folder / "few.txt"], "few.txt: nothing that ranks"),
        "no ids": (["pool", plain], "nobody knows which image and caption its rows are; name an npz"),
        "other items": (
            ["pool", one, other],
            "other and one rank different images; given: 1 only in the first",
        ),
        "too deep": (["pool", one, "--k", 41, "--direction", "t2i"], "given: 40 items; allowed: 41 or more"),
        "too shallow": (["pool", run, "--k", 5], "two: the lists of i2t are too short; given: 4 items"),
        "unknown": (
            ["pool", one, "--queries", folder / "few.txt"],
            "queries that nobody knows; given: 2 of them, such as nobody, nothing",
        ),
        "empty": (["pool", one, "--queries", folder / "empty.txt"], "no query in this file"),
        "both": (
            ["pool", one, "--queries", folder / "both.txt"],
            "ids of both an image and a caption; given: 1",
        ),
        "suffix": (["pool", one, "--out", folder / "pool.xlsx"], "unknown kind of table; given: .xlsx"),
        "stray": (
            ["bias", one, two, "--judgements", folder / "stray.csv"],
            "t2i: judged pairs of items that no model ranks; given: 1 pairs, such as with 999",
        ),
        "lost": (
            ["bias", one, two, "--judgements", folder / "lost.csv"],
            "one, t2i: judged queries that a model was not asked; given: 1 of 1, such as 5000",
        ),
        "none accepted": (["bias", one, two, "--judgements", folder / "no.csv"], "no proposal was accepted"),
        "half": (
            ["bias", one, two, "--judgements", folder / "half.csv"],
            "the table says of some models only what they proposed; given: two; allowed: place:one",
        ),
        "one model": (
            ["bias", one, "--judgements", folder / "half.csv"],
            "models to compare; given: 1 model",
        ),
        "measure": (
            ["bias", one, two, "--judgements", folder / "no.csv", "--measure", "map"],
            "not a measure of bias; given: map; allowed: graded_recall_at_1",
        ),
        "no votes": (["preferences", folder / "stray.csv"], "neither a list of votes nor a square table"),
    }


@pytest.mark.parametrize(
    "case",
    [
        "no file", "no lists", "no ids", "other items", "too deep", "too shallow", "unknown", "empty", "both",
        "suffix", "stray", "lost", "none accepted", "half", "one model", "measure", "no votes",
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said_in_one_line(counterfoil, world: World, case: str) -> None:
    arguments, message = bad(world)[case]
    said = counterfoil(*arguments)
    assert said.code == 2
    lines = said.err.strip().splitlines()
    assert len(lines) == 1, said.err
    assert message in lines[0]


@pytest.mark.parametrize("command", ["pool", "bias", "preferences"])
def test_help_has_examples(counterfoil, command: str) -> None:
    said = counterfoil(command, "--help")
    assert said.code == 0
    assert f"counterfoil {command}" in said.out
    assert "Examples:" in said.out
