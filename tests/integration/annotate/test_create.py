"""`counterfoil annotate create`: folders from tables, pools and benchmarks, and what is refused."""

import csv
import io
import json
import os
import re
import stat
from collections import Counter
from contextlib import closing
from pathlib import Path

import PIL.Image
import pytest
from click.testing import CliRunner
from starlette.testclient import TestClient

from counterfoil import catalog
from counterfoil.annotate.campaign import FILES, SECRETS, TEXTS, budget_of, open_campaign
from counterfoil.annotate.database import open_database
from counterfoil.annotate.participants import make_links
from counterfoil.annotate.server.app import make_app
from counterfoil.annotate.simulation import crowd, simulate
from counterfoil.benchmarks.folder import save
from counterfoil.cli import app
from processes import python
from refusals import refuses


@pytest.fixture
def here(here):
    """A folder with images and tables of pairs, golden pairs and a test."""
    rows = [{"id": f"p{i}", "image": f"{i}.png", "caption": f"c {i}"} for i in range(10)]
    write(here / "pairs.csv", rows)
    rows = [{"image": f"{i}.png", "caption": f"g {i}", "golden": ("yes", "no")[i % 2]} for i in range(4)]
    write(here / "golden.csv", rows)
    return here


def write(path, rows):
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, rows[0])
        table.writeheader()
        table.writerows(rows)


def create(*words, code=0):
    done = CliRunner().invoke(app, ["annotate", "create", *words])
    assert done.exit_code == code, done.output + repr(done.exception)
    return done.output if code == 0 else str(done.exception)


YES_NO = ("yes-no", "--from", "pairs.csv", "--images", "photos", "--out", "new")
KNOWN = ("--golden", "golden.csv", "--onboarding", "golden.csv")


def test_a_campaign_from_a_table_by_command(here):
    create(*YES_NO, *KNOWN, "--overlap", "2", "--title", "T", "--languages", "eu,en")
    made = open_campaign(here / "new")
    assert Counter(item.role for item in made.items) == {"work": 10, "golden": 4, "onboarding": 4}
    # What is given is used, where the recipe says nothing of it.
    assert (made.recipe.golden_share, made.recipe.onboarding) == (0.1, 4)
    assert (made.recipe.overlap, made.recipe.title, made.recipe.languages) == (2, "T", ("eu", "en"))
    assert sorted(path.name for path in (here / "new" / "images").iterdir()) == sorted(made.image_names)
    assert made.source.column("item").to_pylist()[:2] == ["p0", "p1"]
    assert made.image(made.items[0].cells["image"]).read_bytes()[:4] == b"\x89PNG"


@pytest.mark.parametrize("design", ["queue", "blocks"])
def test_the_budget_is_what_comes_out(here, design):
    own = ("--design", "blocks", "--per-person", "6") if design == "blocks" else ("--golden-share", "0.25")
    words = (*KNOWN, *own, "--overlap", "4", "--pay-per-hour", "9", "--json", "-", "--quiet")
    result = json.loads(create(*YES_NO, *words))
    work = {"role": "work", "items": 10, "instances": 10, "answers": 40, "hours": 40 * 4 / 3600, "cost": 0.4}
    assert (result["roles"][0], result["digest"]) == (work, open_campaign(here / "new").digest)
    # The salt says who sees a golden item when: with one of its own each run would be another campaign.
    kept = json.loads((here / "new" / SECRETS).read_text())
    (here / "new" / SECRETS).write_text(json.dumps({**kept, "salt": "0" * 64}))
    campaign = open_campaign(here / "new")
    simulated = simulate(campaign, crowd({"able": 1.0}, 12, accuracy=1.0))
    done = Counter(simulated.judgements.column("role").to_pylist())
    budget = budget_of(campaign, 12)
    # Who comes for an item alone may see no golden one: the share is of pages, at random.
    assert done["work"] == budget.parts["work"].answers == 40
    assert done["onboarding"] == budget.parts["onboarding"].answers == 12 * 4
    assert done["golden"] == pytest.approx(budget.parts["golden"].answers, abs=3)
    people, parts = result["budget"]["people"], result["budget"]["parts"]
    assert parts["golden"]["answers"] > 0
    # Texts of some hundred words are read by each person, at the pay per hour.
    reading = parts["reading"]
    assert reading["answers"] == people
    assert 0.1 < reading["hours"] * 60 / people < 5
    assert reading["cost"] == pytest.approx(9 * reading["hours"])


def test_settings_of_ones_own(here):
    create("rating", *YES_NO[1:], "--set", "levels=5", "--set", "labels=bad,good")
    assert open_campaign(here / "new").recipe.settings == {"levels": 5, "labels": ["bad", "good"]}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--from", "nowhere.csv"], "nowhere.csv"),
        (["--from", "photos"], "no table, benchmark or campaign of this name"),
        (["--golden", "pairs.csv"], "no right answer of an item for golden"),
        (["--golden", "auto"], "golden items are drawn for a pool"),
        (["--images", "nowhere"], "no such folder"),
        (["--design", "blocks", "--per-person", "11"], "fewer items than the design needs"),
        (["--set", "levels=5"], "unknown key; given: levels"),
    ],
)
def test_what_makes_no_campaign_is_one_line_and_leaves_nothing(here, words, message):
    refused = create(*YES_NO, *words, code=1)
    assert (message in refused, "\n" in refused) == (True, False)
    assert not (here / "new").exists()


def test_a_picture_of_a_benchmark_is_refused_with_its_question(here):
    rows = [{"image": f"{i}.png", "caption": f"c {i}", "negative_caption": f"no {i}"} for i in range(3)]
    write(here / "own.csv", rows)
    (here / "photos" / "1.png").write_bytes((here / "photos" / "1.png").read_bytes()[:50])
    refused = create(*YES_NO, "--from", "pairs", "--data", "own.csv", code=1)
    assert re.search(r"question '1': \S*photos/1\.png: image cannot be decoded", refused), refused
    assert not (here / "new").exists()


def test_a_campaign_is_replaced_only_where_that_is_asked_for_and_never_with_answers(here):
    create(*YES_NO)
    assert open_campaign(here / "new").pay.per_hour == 0
    assert "the folder holds files" in create(*YES_NO, code=1)
    # People are paid where it is said or a platform pays.
    create(*YES_NO, "--overwrite", "--overlap", "5", "--entry", "prolific")
    made = open_campaign(here / "new")
    assert (made.recipe.overlap, made.pay.per_hour) == (5, 12)
    (here / "new" / "database.sqlite").write_bytes(b"answers")
    assert "answers" in create(*YES_NO, "--overwrite", code=1)
    assert (here / "new" / "database.sqlite").read_bytes() == b"answers"


def test_a_killed_create_is_finished_by_the_same_command(here):
    write(here / "pairs.csv", [{"image": f"{i}.png", "caption": f"c {i}"} for i in range(2)])
    script = Path(__file__).with_name("killed_in_create.py")
    words = ("annotate", "create", *YES_NO[:-2], "--quiet")
    done = python(script, "made", *words, cwd=here)
    assert done.returncode == 0, done.stderr
    # The note, two images and every file of a campaign without answers; then the one that went well.
    # Beside them lie the locks of those that were killed.
    folders = [path for path in (here / "made").iterdir() if not path.name.endswith(".lock")]
    *killed, whole = sorted(folders, key=lambda path: int(path.name))
    later = {"images", "figures", "database.sqlite", "export", "prolific.json", "prolific_bonuses.json"}
    # What deleting answers leaves comes later too, and so do translations.
    later |= {"kept_labels.csv", "data_sheet.md", *TEXTS}
    assert len(killed) == 2 + len(set(FILES) - later | {"instructions.md", "consent.md"})
    for folder in killed[1:]:
        refuses("not written to its end", open_campaign, folder)
    # Before the first file, before the last, and every fourth between them.
    for folder in sorted({*killed[::4], killed[-1]}):
        create(*YES_NO[:-1], f"made/{folder.name}")
        assert contents(folder) == contents(whole)
        assert stat.S_IMODE((folder / SECRETS).stat().st_mode) == 0o600
        assert len(open_campaign(folder).secrets["salt"]) == 64


def contents(folder):
    """What a folder holds but for its secrets, and for what a killed process was writing."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".part"]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files if path.name != SECRETS}


def test_a_pool_with_golden_pairs_drawn_from_its_gallery(here):
    """ECCV Caption section 3.2: 18 pairs of a pool, one true pair and one random one in each task."""
    gallery = catalog.benchmark("world-gallery")
    save(gallery, here / "mine")
    images, captions = [i.id for i in gallery.images], [c.id for c in gallery.captions]
    rows = [
        {"pair": str(i), "direction": "i2t", "query": images[i % 20], "item": captions[i]}
        | {"image": images[i % 20], "caption": captions[i], "place:a": "1"}
        for i in range(60)
    ]
    write(here / "pool.csv", rows)
    words = ("--design", "blocks", "--per-person", "20", "--golden", "auto", "--out", "new")
    create("match", "--from", "pool.csv", "--benchmark", "mine", *words)
    made = open_campaign(here / "new")
    assert made.recipe.golden_per_block == 2
    # 60 pairs are 4 tasks of 18.
    kinds = Counter(item.kind for item in made.items if item.role == "golden")
    assert kinds == {"true pair": 4, "random pair": 4}
    assert [item.id for item in made.items if item.role == "work"] == made.source["item"].to_pylist()
    assert made.source["place:a"].to_pylist() == ["1"] * 60


def test_what_is_written_is_its_owners_alone(here):
    before = os.umask(0o022)
    create(*YES_NO, "--golden", "golden.csv")
    simulate_few = "simulate new --people 5 --keep tried"
    for words in ("links new --out links.csv", simulate_few, "export tried --out labels"):
        done = CliRunner().invoke(app, ["annotate", *words.split()])
        assert done.exit_code == 0, done.output
    os.umask(before)
    folders = [here / name for name in ("new", "tried", "labels")]
    made = [here / "links.csv", *folders, *(path for folder in folders for path in folder.rglob("*"))]
    assert here / "tried" / "database.sqlite" in made
    assert [path for path in made if path.stat().st_mode & 0o077] == []
    # A database that an earlier version made.
    database = here / "tried" / "database.sqlite"
    database.chmod(0o644)
    open_database(open_campaign(here / "tried")).close()
    assert oct(database.stat().st_mode & 0o777) == "0o600"


def test_images_of_the_instructions_are_shown(here):
    create(*YES_NO)
    texts = here / "new" / "figures"
    (texts / "figs").mkdir(parents=True)
    exif = PIL.Image.Exif()
    exif[0x010F], exif[0x0112] = "a maker", 6
    PIL.Image.new("RGB", (10, 20), "teal").save(texts / "figs" / "good one.jpg", exif=exif)
    text = "Look:\n\n![a good one](figs/good%20one.jpg)\n\n![elsewhere](https://example.org/x.png)\n"
    (here / "new" / "instructions.md").write_text(text)
    campaign = open_campaign(here / "new")
    assert campaign.instructions_in() == text
    with closing(open_database(campaign)) as database:
        client = TestClient(make_app(campaign, database), "http://127.0.0.1")
        page = client.get(f"/enter/{make_links(campaign, 1)[0]}").text
        (address,) = re.findall(r'src="(/media/[0-9a-f]+)" alt="a good one"', page)
        reply = client.get(address)
        assert (reply.status_code, reply.headers["content-type"]) == (200, "image/png")
        with PIL.Image.open(io.BytesIO(reply.content)) as shown:
            assert (shown.size, shown.info) == ((20, 10), {})
        assert "example.org" not in page
        simulate(campaign, crowd({"able": 1.0}, 1), keep=here / "tried")
        make_app(open_campaign(here / "tried"), database)
        (campaign.folder / "figures" / "figs" / "good one.jpg").unlink()
        refuses("no such image", make_app, campaign, database)


@pytest.mark.parametrize("name", ["../pairs.csv", "missing.png", "instructions.md", "/etc/hostname"])
def test_images_of_the_instructions_that_are_none_are_refused(here, name):
    create(*YES_NO)
    (here / "new" / "instructions.md").write_text(f"![an image]({name})")
    campaign = open_campaign(here / "new")
    with closing(open_database(campaign)) as database:
        refuses(f"no such image; given: {name}", make_app, campaign, database)
