"""Pools, and the bias of machine annotators, from files in to tables out."""

import json
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks.folder import save
from counterfoil.benchmarks.tables import read_table

from .annotator_world import IMAGES, NAMES, PER, first, image_id, judged


def test_a_pool_is_the_union_of_first_items(counterfoil, world):
    out, summary = world.folder / "pool.csv", world.folder / "pool.json"
    said = counterfoil.succeeds("pool", *world.files(), "--k", 4, "--out", out, "--json", summary)
    table, facts = read_table(out), json.loads(summary.read_text())
    captions = first(world.scores["two"], 4).tolist()
    ranked = [(i, str(c), place) for i, row in enumerate(captions) for place, c in enumerate(row, 1)]
    proposed = {(image_id(i), caption): place for i, caption, place in ranked}
    result = zip(*(table[name] for name in ("direction", "image", "caption", "place:two")), strict=True)
    assert {tuple(row[1:3]): int(row[3]) for row in result if row[0] == "i2t" and row[3] != "0"} == proposed
    pairs = facts["pairs"]
    assert (facts["rows"], pairs) == (len(table), len(set(table["pair"])))
    assert facts["proposals"] == 4 * 3 * (IMAGES + IMAGES * PER)
    assert facts["yield"]["3"][3] == len(table)
    assert facts["by_model"]["one"]["new"] == facts["by_model"]["one"]["proposed"] == 4 * IMAGES * (1 + PER)
    assert f"{pairs:,} pairs to verify: the first 4 of 3 models for 40 images" in said.out


def test_runs_embeddings_and_similarities_pool_alike(counterfoil, world):
    # The same model as a similarity, with items in another order.
    turned = [np.random.default_rng(n).permutation(size) for n, size in ((1, IMAGES), (2, IMAGES * PER))]
    np.save(world.folder / "three.npy", world.scores["three"][np.ix_(*turned)])
    ids = world.folder / "ids.npz"
    np.savez(ids, image_ids=100 + turned[0], caption_ids=turned[1])
    runs = [world.run("one"), world.run("two")]
    tables = []
    for number, sources in enumerate((world.files(), [*runs, world.folder / "three.npy"])):
        out = world.folder / f"pool{number}.parquet"
        counterfoil.succeeds("pool", *sources, "--out", out, "--ids", ids, "-q")
        tables.append(read_table(out))
    assert [c for c in tables[1].columns if c != "text"] == list(tables[0].columns)
    for name, cells in tables[0].columns.items():
        assert list(cells) == list(tables[1][name])
    assert tables[1]["text"][0] == f'words, of "{tables[1]["caption"][0]}"'


def test_queries_of_ones_own(counterfoil, world):
    chosen, out = world.folder / "queries.txt", world.folder / "pool.csv"
    chosen.write_text("i2t/103\n7\n\nt2i/101\n7\n")
    counterfoil.succeeds("pool", *world.files(), "--queries", chosen, "--out", out)
    table = read_table(out)
    named = set(zip(table["direction"], table["query"], strict=True))
    assert named == {("i2t", "103"), ("t2i", "7"), ("t2i", "101")}
    chosen.write_text("103\n")
    says = "ids of both an image and a caption; given: 1"
    counterfoil.refused(f"pool {world.folder}/one.npz --queries {chosen}", says=says)
    short = world.run("two", top=4)
    counterfoil.refused(f"pool {short} --k 5", says="two: the lists of i2t are too short; given: 4 items")
    chosen.write_text("i2t/103\n")
    said = counterfoil("pool", *world.files(), f"--queries {chosen} --direction t2i --out {out} --overwrite")
    assert "unknown queries; given: 1 of them, such as i2t/103; allowed: ids of captions" in said.err


def test_of_several_galleries_of_a_model_one_is_taken(counterfoil, world):
    half = replace(world.benchmark, card=world.benchmark.card.model_copy(update={"name": "half"}))
    half = half.select(np.arange(len(half)) % 2 == 0)
    for name in ("one", "two"):
        world.run(name)
        world.run(name, benchmark=half)
    runs = world.folder / "runs"
    counterfoil.fails(f"pool {runs}", says="several galleries; given: half, mine; name one, as in RUN/half")
    chosen = world.folder / "queries.txt"
    chosen.write_text("i2t/101\n")
    # Of `half`, image 101 is no query.
    assert "i2t/101" not in half.questions.ids
    assert counterfoil("pool", runs, "--queries", chosen).code == 0
    said = counterfoil("pool", runs / "one" / "half", "--queries", chosen)
    assert "queries that a model was not asked; given: 1 of 1, such as 101" in said.err


def test_known_pairs_are_left_out(counterfoil, world):
    run, out = world.run("one"), world.folder / "pool.csv"
    said = counterfoil.succeeds("pool", run, *world.files("two"), "--exclude-known", "--out", out)
    table = read_table(out)
    own = {(image_id(i), str(PER * i + j)) for i in range(IMAGES) for j in range(PER)}
    assert not own & set(zip(table["image"], table["caption"], strict=True))
    assert " more were left out, known to be right" in said.err
    counterfoil.fails("pool", *world.files(), "--exclude-known", says="--exclude-known needs a run")


def test_pooling_in_rounds(counterfoil, world):
    out, facts = world.folder / "rounds", world.folder / "facts.json"
    runs = [world.run(name) for name in NAMES]
    told = (f"--judge {world.folder}/said.csv --out {out} --json {facts}",)
    counterfoil.fails("pool rounds", *runs, *told, says="said.csv")
    counterfoil.succeeds("pool", *runs, "--k", 3, "--out", world.folder / "pool.csv")
    head, *rows = (world.folder / "pool.csv").read_text().splitlines()
    answers = [f"{row},{'yes' if i % 3 else 'no'}" for i, row in enumerate(rows)]
    (world.folder / "said.csv").write_text("\n".join([f"{head},answer", *answers]))
    pool = read_table(world.folder / "pool.csv")
    judge = f"--judge {world.folder}/said.csv --rounds 2 --k 3 --out {out} --json {facts}"
    told = counterfoil.succeeds("pool rounds", *runs, judge)
    assert "Rounds of pooling" in told.out
    rounds = json.loads(facts.read_text())["rounds"]
    assert rounds[0]["judged"] == len(set(zip(pool["image"], pool["caption"], strict=True)))
    assert len(read_table(out / "positives.csv")) == rounds[-1]["all_right"]
    judged = ("--judgements", out / "judgements.csv", "--measure", "recall_at_1")
    counterfoil.succeeds("pool bias", *runs, *judged)


def test_bias_is_that_of_the_performances_in_print_and_in_a_plot(counterfoil, world):
    pool, result = world.folder / "pool.csv", world.folder / "bias.json"
    assert counterfoil("pool", *world.files(), "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    more = f"--judgements {answers} --draws 200 --json {result} --plot {world.folder}/bias.png"
    said = counterfoil.succeeds("pool bias", *world.files(), more)
    measure = json.loads(result.read_text())["measures"]["t2i_graded_recall_at_1"]
    whole = measure["annotators"]["one+two+three"]["performance"]
    alone = measure["annotators"]["two"]
    off = {m: abs(alone["performance"][m] - whole[m]) for m in NAMES}
    assert alone["bias"] == pytest.approx(sum(off.values()) / 3)
    assert "Bias of each annotator alone, in points: text to image, graded R@1" in said.out
    assert "intervals take each query by itself" in said.err
    assert (world.folder / "bias.png").stat().st_size > 10_000
    assert f"{100 * alone['bias']:.2f}" in said.out


def test_places_in_the_table_say_who_proposed(counterfoil, world):
    pool = world.folder / "pool.csv"
    assert counterfoil("pool", *world.files(), "--k", 6, "--out", pool, "-q").code == 0
    answers = judged(world, pool, words=False)
    texts = []
    for name, options in (("a", []), ("b", ["--k", 6]), ("c", ["--k", 2])):
        out = world.folder / f"{name}.json"
        more = (f"--judgements {answers} --json {out} --draws 100", *options)
        said = counterfoil.succeeds("pool bias", *world.files(), *more)
        texts.append(out.read_text())
    assert texts[0] == texts[1] != texts[2]
    # Without those columns the models' own first items are the proposals: the same ones.
    rows = [line.split(",") for line in answers.read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if not name.startswith("place:")]
    bare = world.folder / "bare.csv"
    bare.write_text("\n".join(",".join(row[i] for i in kept) for row in rows))
    out = world.folder / "d.json"
    counterfoil.succeeds("pool bias", *world.files(), f"--judgements {bare} --k 6 --json {out} --draws 100")
    assert out.read_text() == texts[0]
    of_images = ("--judgements", bare, "--direction", "i2t", "--draws", 100)
    only = counterfoil("pool bias", *world.files(), *of_images)
    assert "image to text" in only.out
    assert "text to image" not in only.out
    said = counterfoil("pool bias", *world.files(), "--judgements", bare, "--k", 9, "--draws", 100)
    assert "proposals were never judged and count as wrong" in said.err


def test_benchmarks_against_judgements(counterfoil, world):
    pool, folder, result = world.folder / "pool.csv", world.folder / "benchmark", world.folder / "bias.json"
    save(world.benchmark, folder)
    runs = [world.run(name) for name in NAMES]
    assert counterfoil("pool", *runs, "--direction", "t2i", "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    more = f"--judgements {answers} --positives {folder} --json {result} --draws 100"
    said = counterfoil.succeeds("pool bias", *runs, more)
    facts = json.loads(result.read_text())
    entry, several = facts["positives"]["t2i"]["mine"], facts["multiplicity"]["t2i"]
    assert 0 < entry["precision"]["value"] <= 1
    assert 0 < entry["recall"]["value"] <= 1
    assert several["mine"]["total"] == IMAGES * PER
    lines = answers.read_text().splitlines()
    accepted = [line for line in lines if "100% YES" in line or "Partially" in line]
    assert several["judgements"]["total"] == len(accepted)
    assert f"×{len(accepted) / (IMAGES * PER):.2f}" in said.out
    assert "those of one image together" in facts["interval"]["method"]
