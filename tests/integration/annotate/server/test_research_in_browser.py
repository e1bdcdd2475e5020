"""The researcher's pages in a real browser: by keyboard, on a phone, at 200 % zoom, for screen readers."""

import pytest

from annotate.small_campaigns import Worker
from counterfoil.annotate.answering import running
from counterfoil.annotate.review import adjudicated, reviews
from served_campaign import campaign_of, serving

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    """Two people judged three pairs, and differ on all."""
    campaign = campaign_of(tmp_path_factory.mktemp("research") / "campaign", "yes-no")
    with serving(campaign) as served:
        for number, answer in ((1, "yes"), (2, "no")):
            Worker(served.database, campaign, number, judge=lambda item, answer=answer: answer).do()
        yield served


@pytest.fixture
def page(visit, served):
    """Opens the overview, logged in."""

    def opened(width=1280, *, dark=False):
        # Browsers report a refusal, which the page shows.
        settings = {"viewport": {"width": width, "height": 800}, "color_scheme": "dark" if dark else "light"}
        view = visit(f"{served.url}/research", allowed=(" 401 ", " 422 "), **settings)
        # The field has the focus from the beginning: Tab would leave it.
        view.locator("#token:focus").wait_for()
        view.keyboard.type(served.campaign.secrets["token"])
        view.keyboard.press("Enter")
        view.wait_for_selector("#progress")
        return view

    return opened


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_pages_are_accessible_and_never_wider_than_the_screen(page, violations, served, width, dark):
    view = page(width, dark=dark)
    for path in ("/research", view.locator("#people h3 a").first.get_attribute("href"), "/research/disputes"):
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
    seen = []
    for keys in (["2", "Enter"], ["n"]):
        seen.append(view.get_attribute("#decision", "data-item"))
        for key in keys:
            view.keyboard.press(key)
        view.wait_for_selector(f'#decision:not([data-item="{seen[-1]}"])')
    decided = adjudicated(served.database, served.campaign)
    assert [(key[0], item.answer) for key, item in decided.items()] == [(seen[0], "no")]


def test_the_campaign_is_paused_and_goes_on(page, served):
    view = page()
    for button, after, state in (("Pause", "Resume", "paused"), ("Resume", "Pause", "open")):
        view.get_by_role("button", name=button).click()
        view.get_by_role("button", name=after).wait_for()
        assert running(served.database) == state


def test_a_person_is_reviewed_and_a_refusal_is_shown(page, served):
    view = page()
    view.locator("summary").first.press("Enter")
    form = view.locator("form.review").first
    form.get_by_role("button", name="Reject").press("Enter")
    view.get_by_text("a rejection needs a reason").wait_for()
    assert not reviews(served.database)
    form.get_by_label("Reason").fill("Everything was answered with yes.")
    form.get_by_role("button", name="Reject").press("Enter")
    view.get_by_text("rejected", exact=True).first.wait_for()
    (review,) = reviews(served.database).values()
    assert review.reason == "Everything was answered with yes."
