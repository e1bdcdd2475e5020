"""Campaigns of every form over drawn pictures, and a real server of one on this machine."""

import io
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass

import PIL.Image
import PIL.ImageDraw
import uvicorn

from counterfoil.annotate.campaign import Campaign, CampaignRecipe, create_folder
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.participants import make_links
from counterfoil.annotate.server.app import make_app

#: A text that would run or end something if a page forgot to escape it, and a path that no file may have.
NASTY = "</script><script>window.hacked = 1</script><img src=x onerror='window.hacked = 2'>"


def picture(colour):
    image = PIL.Image.new("RGB", (320, 240), colour)
    PIL.ImageDraw.Draw(image).ellipse((100, 60, 220, 180), fill="white")
    file = io.BytesIO()
    image.save(file, "PNG")
    return file.getvalue()


COLOURS = ("darkred", "navy", "darkgreen", "purple")
PICTURES = {f"{colour}.png": picture(colour) for colour in COLOURS}
_RED, _BLUE, _GREEN, _PURPLE = PICTURES
_CAPTION = f"A white disc on a dark red ground {NASTY} 𝒜 naïve caption."

#: Cells of one item of each form, by its name.
PAIR = {"image": _RED, "caption": _CAPTION}
CELLS = {
    **dict.fromkeys(("yes-no", "match", "rating", "error-spans"), PAIR),
    "best-of-k": {"caption": _CAPTION, "images": [_RED, _BLUE, _GREEN, _PURPLE]},
    "which-image": {**PAIR, "negative_image": _BLUE},
    "choose": {"images": [_RED], "captions": [_CAPTION, "A white disc on a blue ground."]},
    "preference": {"first": "one", "second": "other", "caption": _CAPTION}
    | {"first_images": [_RED, _BLUE, _GREEN], "second_images": [_PURPLE, _GREEN, _RED]}
    | dict.fromkeys(("image", "first_captions", "second_captions")),
    "quad-authoring": {"images": [_RED, _BLUE, _GREEN], "topic": f"Discs {NASTY}"},
    "quad-validation": {"first_image": _RED, "second_image": _BLUE, "first_caption": _CAPTION}
    | {"second_caption": "A dark red disc on a white ground.", "author": ""},
}


def campaign_of(folder, form, *, n=3, onboarding=None, instructions="Look **closely**.", **recipe):
    """A campaign of n items of a form in a folder, with a test of two items where `onboarding` is golden."""
    items = [WorkItem(f"{form} {i}", CELLS[form]) for i in range(n)]
    if onboarding:
        items += [WorkItem(f"test {i}", CELLS[form], "onboarding", onboarding) for i in range(2)]
        recipe["onboarding"] = 2
    values = {"title": "Discs & <grounds>", "overlap": 30, "completion": "DONE-1", **recipe}
    campaign = create_folder(folder, CampaignRecipe(form=form, **values), items, PICTURES)
    (folder / "instructions.md").write_text(instructions)
    return campaign


@dataclass
class Served:
    """A campaign that a server on this machine serves at `url`."""

    campaign: Campaign
    database: Database
    url: str
    log: list[str]

    def link(self, number=1):
        return f"{self.url}/enter/{make_links(self.campaign, number)[number - 1]}"


@contextmanager
def serving(campaign, **more):
    """Serve a campaign in a thread until the block ends; `more` is the application's."""
    database = open_database(campaign, serve=True)
    log = []
    app = make_app(campaign, database, log=log.append, **more)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", proxy_headers=False))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive(), "the server did not start"
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Served(campaign, database, f"http://127.0.0.1:{port}", log)
    finally:
        server.should_exit = True
        thread.join(10)
        database.close()
