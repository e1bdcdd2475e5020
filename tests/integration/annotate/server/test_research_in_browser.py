"""The researcher's pages in a real browser: by keyboard, on a phone, at 200 % zoom, for screen readers."""

from pathlib import Path
from typing import Any

import pytest

from annotate.small_campaigns import Worker
from counterfoil.annotate.adjudication import adjudicated
from counterfoil.annotate.review import reviews
from counterfoil.annotate.work import running
from served_campaign import campaign_of, serving

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Two people judged three pairs, and differ on all."""
    folder: Path = tmp_path_factory.mktemp("research") / "campaign"
    with serving(campaign_of(folder, "yes-no")) as found:
        Worker(found.database, found.campaign, 1, judge=lambda item: "yes").do()
        Worker(found.database, found.campaign, 2, judge=lambda item: "no").do()
        yield found


@pytest.fixture
def page(chromium, served):
    """Opens the overview, logged in; at the end no page may have complained or asked another site."""
    contexts, troubles = [], []

    def opened(width: int = 1280, *, dark: bool = False) -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        view = context.new_page()
        view.set_default_timeout(15_000)
        view.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        view.on(
            "request",
            lambda sent: (
                troubles.append(sent.url) if not sent.url.startswith((served.url, "data:")) else None
            ),
        )
        view.goto(f"{served.url}/research")
        # The field has the focus from the beginning: Tab would leave it.
        view.locator("#token:focus").wait_for()
        view.keyboard.type(served.campaign.secrets["token"])
        view.keyboard.press("Enter")
        view.wait_for_selector("#progress")
        # Browsers report a refusal, which the page shows.
        view.on("console", lambda sent: None if " 422 " in sent.text else troubles.append(sent.text))
        return view

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_pages_are_accessible_and_never_wider_than_the_screen(page, violations, served, width, dark):
    view = page(width, dark=dark)
    answers = view.locator("#people h3 a").first.get_attribute("href")
    for path in ("/research", answers, "/research/disputes"):
        view.goto(f"{served.url}{path}")
        assert violations(view) == []
        # 640 pixels are what 200 % zoom leaves of a laptop.
        for wide in (640, width):
            view.set_viewport_size({"width": wide, "height": 800})
            assert view.evaluate("document.documentElement.scrollWidth <= innerWidth"), wide
    # The captions hold markup that would run if it were not escaped.
    assert view.evaluate("window.hacked === undefined")


def test_disagreements_are_decided_by_keyboard_alone(page, served):
    view = page()
    view.goto(f"{served.url}/research/disputes")
    first = view.get_attribute("#decision", "data-item")
    view.keyboard.press("2")
    view.keyboard.press("Enter")
    view.wait_for_function("first => document.querySelector('#decision').dataset.item !== first", arg=first)
    decided = adjudicated(served.database, served.campaign)
    assert [(key[0], each.answer) for key, each in decided.items()] == [(first, "no")]
    second = view.get_attribute("#decision", "data-item")
    view.keyboard.press("n")
    view.wait_for_function(
        "second => document.querySelector('#decision').dataset.item !== second", arg=second
    )


def test_the_campaign_is_paused_and_goes_on(page, served):
    view = page()
    view.get_by_role("button", name="Pause").click()
    view.get_by_role("button", name="Resume").wait_for()
    assert running(served.database) == "paused"
    view.get_by_role("button", name="Resume").click()
    view.get_by_role("button", name="Pause").wait_for()
    assert running(served.database) == "open"


def test_a_person_is_reviewed_and_a_refusal_is_shown(page, served):
    view = page()
    view.locator("summary").first.press("Enter")
    form = view.locator("form.review").first
    form.get_by_role("button", name="Reject").press("Enter")
    view.get_by_text("a rejection needs a reason").wait_for()
    assert not reviews(served.database)
    form.get_by_label("Reason").fill("Everything was answered with yes.")
    form.get_by_role("button", name="Reject").press("Enter")
    view.get_by_text("3 answers set aside").wait_for()
    (made,) = reviews(served.database).values()
    assert made.reason == "Everything was answered with yes."
    view.get_by_text("rejected", exact=True).first.wait_for()
