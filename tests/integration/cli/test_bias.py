"""The bias of machine annotators from the command line, from files in to files out."""

import json

import pytest

from counterfoil.benchmarks.folder import save

from .annotator_world import IMAGES, NAMES, PER, judged


def test_bias_is_that_of_the_performances_on_a_page_and_in_a_plot(counterfoil, world):
    pool, found = world.folder / "pool.csv", world.folder / "bias.json"
    assert counterfoil("pool", *world.files(), "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    said = counterfoil.succeeds(
        "pool bias",
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
    assert "Bias of each annotator alone, in points: text to image, graded R@1" in said.out
    assert "intervals take each query by itself" in said.err
    assert (world.folder / "bias.png").stat().st_size > 10_000
    page = (world.folder / "bias.html").read_text()
    assert "Text to image, graded R@1" in page
    assert f"{100 * alone['bias']:.2f}" in page


def test_places_in_the_table_say_who_proposed(counterfoil, world):
    pool = world.folder / "pool.csv"
    assert counterfoil("pool", *world.files(), "--k", 6, "--out", pool, "-q").code == 0
    answers = judged(world, pool, words=False)
    texts = []
    for name, options in (("a", []), ("b", ["--k", 6]), ("c", ["--k", 2])):
        out = world.folder / f"{name}.json"
        said = counterfoil.succeeds(
            "pool bias", *world.files(), f"--judgements {answers} --json {out} --draws 100", *options
        )
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
    only = counterfoil(
        "pool bias", *world.files(), "--judgements", bare, "--direction", "i2t", "--draws", 100
    )
    assert "image to text" in only.out
    assert "text to image" not in only.out
    said = counterfoil("pool bias", *world.files(), "--judgements", bare, "--k", 9, "--draws", 100)
    assert "proposals were never judged and count as wrong" in said.err


def test_benchmarks_against_judgements(counterfoil, world):
    pool, folder, found = world.folder / "pool.csv", world.folder / "benchmark", world.folder / "bias.json"
    save(world.benchmark, folder)
    runs = [world.run(name) for name in NAMES]
    assert counterfoil("pool", *runs, "--direction", "t2i", "--out", pool, "-q").code == 0
    answers = judged(world, pool)
    said = counterfoil.succeeds(
        "pool bias", *runs, f"--judgements {answers} --positives {folder} --json {found} --draws 100"
    )
    facts = json.loads(found.read_text())
    entry, several = facts["positives"]["t2i"]["mine"], facts["multiplicity"]["t2i"]
    assert 0 < entry["precision"]["value"] <= 1
    assert 0 < entry["recall"]["value"] <= 1
    assert several["mine"]["total"] == IMAGES * PER
    accepted = [
        line for line in answers.read_text().splitlines() if "100% YES" in line or "Partially" in line
    ]
    assert several["judgements"]["total"] == len(accepted)
    assert f"×{len(accepted) / (IMAGES * PER):.2f}" in said.out
    assert "those of one image together" in facts["interval"]["method"]
