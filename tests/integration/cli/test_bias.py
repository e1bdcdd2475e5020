"""The bias of machine annotators from the command line, from files in to files out."""

import json

import numpy as np
import pytest

from counterfoil.benchmarks.folder import save

from .annotator_world import IMAGES, NAMES, PER, World, first, judged


def test_bias_is_that_of_the_performances_on_a_page_and_in_a_plot(counterfoil, world: World) -> None:
    pool, found = world.folder / "pool.csv", world.folder / "bias.json"
    assert counterfoil("pool", *world.files(), "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    said = counterfoil.succeeds(
        "bias",
        *world.files(),
        f"--judgements {answers} --draws 200 --json {found} --plot {world.folder}/bias.png "
        f"--html {world.folder}/bias.html",
    )
    facts = json.loads(found.read_text())
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
        said = counterfoil.succeeds(
            "bias", *world.files(), f"--judgements {answers} --json {out} --draws 100", *options
        )
        texts.append(out.read_text())
    assert texts[0] == texts[1] != texts[2]
    # Without those columns the models' own first items are the proposals: the same ones.
    rows = [line.split(",") for line in answers.read_text().splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if not name.startswith("place:")]
    bare = world.folder / "bare.csv"
    bare.write_text("\n".join(",".join(row[i] for i in kept) for row in rows))
    out = world.folder / "d.json"
    counterfoil.succeeds("bias", *world.files(), f"--judgements {bare} --k 6 --json {out} --draws 100")
    assert out.read_text() == texts[0]
    only = counterfoil("bias", *world.files(), "--judgements", bare, "--direction", "i2t", "--draws", 100)
    assert "image to text" in only.out
    assert "text to image" not in only.out
    said = counterfoil("bias", *world.files(), "--judgements", bare, "--k", 9, "--draws", 100)
    assert "proposals were never judged and count as wrong" in said.err
    counterfoil.fails(
        "bias",
        *world.files("one", "two"),
        world.folder / "one.npz",
        f"--judgements {bare}",
        says="two models have one name; given: one",
    )


def test_benchmarks_against_judgements(counterfoil, world: World) -> None:
    pool, folder, found = world.folder / "pool.csv", world.folder / "benchmark", world.folder / "bias.json"
    save(world.benchmark, folder)
    runs = [world.run(name) for name in NAMES]
    assert counterfoil("pool", *runs, "--direction", "t2i", "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    said = counterfoil.succeeds(
        "bias", *runs, f"--judgements {answers} --positives {folder} --json {found} --draws 100"
    )
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


def test_positives_of_another_gallery_are_refused(counterfoil, world: World) -> None:
    pool, other = world.folder / "pool.csv", world.folder / "other.csv"
    assert counterfoil("pool", *world.files(), "--direction", "t2i", "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    other.write_text("image,caption\nelsewhere.jpg,a dog\nnowhere.jpg,a cat\n")
    said = counterfoil(
        "bias", *world.files(), f"--judgements {answers} --positives gallery --data {other} --draws 100 -q"
    )
    assert (said.code, said.out, len(said.err.splitlines())) == (2, "", 1)
    assert "gallery: none of the judged captions is in this benchmark; given: " in said.err
    assert "allowed: such as c0" in said.err


def test_what_cannot_be_used_is_said_in_one_line(counterfoil, world: World) -> None:
    one, two = world.files("one", "two")
    head = "direction,image,caption,gain"
    for models, table, message in (
        (
            f"{one} {two}",
            f"{head}\nt2i,999,5,1",
            "t2i: judged pairs of items that no model ranks; given: 1 pairs, such as with 999",
        ),
        (
            f"{one} {two}",
            f"{head}\nt2i,100,5000,1",
            "one, t2i: judged queries that a model was not asked; given: 1 of 1, such as 5000",
        ),
        (f"{one} {two}", f"{head}\nt2i,100,5,0", "no proposal was accepted"),
        (
            f"{one} {two}",
            f"{head},place:one\nt2i,100,5,1,1",
            "the table says of some models only what they proposed; given: two; allowed: place:one",
        ),
        (f"{one}", f"{head},place:one\nt2i,100,5,1,1", "models to compare; given: 1 model"),
        (
            f"{one} {two} --measure map",
            f"{head}\nt2i,100,5,0",
            "not a measure of bias; given: map; allowed: graded_recall_at_1",
        ),
    ):
        (world.folder / "judged.csv").write_text(table)
        counterfoil.refused(f"bias {models} --judgements {world.folder}/judged.csv", says=message)
