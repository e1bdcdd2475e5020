"""The annotators' page in a real browser: every form by keyboard, every state, and without a network."""

import json
import time
from contextlib import ExitStack

import pytest

from counterfoil.annotate import answering
from counterfoil.annotate.answers import judgement_table
from counterfoil.annotate.forms.base import NOT_VISIBLE
from counterfoil.annotate.languages import LANGUAGES
from counterfoil.annotate.server.work_pages import words_of
from served_campaign import NASTY, campaign_of, serving
from work_page import begin, title

pytestmark = pytest.mark.browser

#: What is pressed to answer an item of each form, and an answer that is in the database afterwards.
PRESSED = {
    "yes-no": (["2"], {"match": "no"}),
    "best-of-k": (["5"], {"best": "none"}),
    "which-image": (["3"], {"fits": "both"}),
    "choose": (["1"], {}),
    "match": (
        ["2", "3", "Enter", "0", "Enter", "text:its shadow", "Enter"],
        {"match": "Partially YES", "shortcomings": ["wrong"], "errors": ["other"], "error": "its shadow"},
    ),
    "preference": (["1"], {}),
    "rating": (["4"], {"rating": "4"}),
    "quad-authoring": (
        ["1", "text:a dog sees a cat", "Enter", "2", "text:a cat sees a dog", "Enter", "1", "2", "Enter"],
        {"first_image": "0", "first_caption": "a dog sees a cat", "second_image": "1", "predicates": "2"},
    ),
    "quad-validation": (["3", "3", "Enter"], {"first_image": "equal", "second_image": "equal"}),
    "error-spans": (
        ["2", "ArrowRight", "Shift+ArrowRight", "3", "Enter"],
        {"verdict": "wrong", "errors": [{"start": 2, "end": 12, "label": "relation"}]},
    ),
}

PHONE = {"viewport": {"width": 360, "height": 740}}
#: Longer than an answer is refused that comes right after an item.
_SETTLED = 600


@pytest.fixture
def serve(tmp_path):
    """Serves a campaign of a form until the test ends."""
    with ExitStack() as stack:
        enter = stack.enter_context
        yield lambda form, **recipe: enter(serving(campaign_of(tmp_path / form, form, **recipe)))


@pytest.fixture
def at_work(serve, visit):
    """Serves a campaign, and opens the page of a person who has begun."""

    def start(form, n=1, allowed=(), **settings):
        served = serve(form, n=n)
        page = visit(served.link(), allowed=allowed, **settings)
        begin(page)
        return served, page

    return start


def press(page, keys, then=""):
    """Press keys on an item that has just appeared, and wait for the heading that comes then."""
    page.wait_for_timeout(_SETTLED)
    for key in keys:
        words = key.removeprefix("text:")
        (page.keyboard.press if words == key else page.keyboard.type)(words)
    if then:
        title(page, then)


def answers(served):
    """All answers, in the order in which they came: values by question."""
    by_item = {}
    for row in judgement_table(served.database, served.campaign).to_pylist():
        value = json.loads(row["answer"]) if row["answer"][:1] == "[" else row["answer"]
        by_item.setdefault((row["person"], row["item"]), {})[row["question"]] = value
    return list(by_item.values())


def wait_for_answers(page, served, n):
    """Wait until so many answers are stored: the page goes on before it knows."""
    for _ in range(1200):
        if len(answers(served)) >= n:
            break
        page.wait_for_timeout(50)
    assert len(answers(served)) == n


def fits(page):
    """Whether nothing is wider than the window, and no button lies over a picture."""
    wide = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    boxes = "[...document.querySelectorAll('main {}')].map((each) => each.getBoundingClientRect())".format
    meet = "a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom"
    over = f"{boxes('.zoom')}.some((a) => {boxes('img')}.some((b) => {meet}))"
    return not page.evaluate(f"{wide} || {over}")


#: Forms whose fields are of kinds that the other forms have, too.
_ALIKE = ("best-of-k", "which-image", "choose", "preference", "rating", "quad-validation")


@pytest.mark.parametrize(
    "form", [pytest.param(form, marks=pytest.mark.slow if form in _ALIKE else []) for form in PRESSED]
)
def test_a_form_is_done_by_keyboard_alone(serve, visit, violations, form, tmp_path):
    served = serve(form, n=1, instructions=f"Look **closely** {NASTY}")
    page = visit(served.link())
    title(page, "Discs & <grounds>")
    begin(page)
    keys, expected = PRESSED[form]
    press(page, keys[:-1])
    assert violations(page) == []
    # A phone, and a laptop at 200 %.
    for width, height in ((360, 740), (640, 360)):
        page.set_viewport_size({"width": width, "height": height})
        assert fits(page), width
    page.set_viewport_size({"width": 1280, "height": 720})
    page.keyboard.press(keys[-1])
    title(page, "Done")
    assert page.locator("output").text_content() == "DONE-1"
    (result,) = answers(served)
    assert expected.items() <= result.items()
    assert page.evaluate("window.hacked") is None


def test_every_state_is_accessible_and_says_what_is_next(serve, visit, violations):
    served = serve("yes-no", n=1, onboarding={"match": ["yes"]})
    page = visit(served.link(), color_scheme="dark", **PHONE)
    title(page, "Discs")
    assert violations(page) == []
    begin(page)
    page.keyboard.press("?")
    assert page.locator("#instructions h2").is_visible()
    assert violations(page) == []
    page.keyboard.press("Escape")
    page.evaluate("start = performance.now() + 1000; performance.now = () => start")
    page.keyboard.press("2")
    page.locator("#notice:not([hidden])", has_text="not right").wait_for()
    # A key that comes too early does not hide what was wrong.
    page.evaluate("performance.now = () => start + 300")
    page.keyboard.press("2")
    page.locator("#notice", has_text="not right").filter(has_text="Choose once more").wait_for()
    assert violations(page) == []
    page.evaluate("performance.now = () => start + 9000")
    press(page, ["2"], then="Your part ends here")
    assert violations(page) == []
    page = visit(served.link(2))
    begin(page)
    press(page, ["1"])
    press(page, ["1"], then="Item 1")
    answering.set_running(served.database, "paused", 0.0)
    page.reload()
    title(page, "Paused")
    assert violations(page) == []
    answering.set_running(served.database, "open", 0.0)
    page.reload()
    title(page, "Item 1")
    page.get_by_role("button", name="Stop and withdraw").click()
    assert violations(page) == []
    page.get_by_role("button", name="Delete my answers").click()
    title(page, "You have withdrawn")
    page = visit(f"{served.url}/work/made-up", allowed=("404",))
    title(page, "cannot be opened")
    assert violations(page) == []


#: What pages of any language say, and that no English is left in them, is held without a browser.
@pytest.mark.parametrize(
    "language", [pytest.param(item, marks=[] if item == "de" else pytest.mark.slow) for item in LANGUAGES[1:]]
)
def test_a_translated_form_is_accessible_and_fits_a_phone(serve, visit, violations, language):
    served = serve("match", n=1, languages=("en", language), pay_per_item=0.25)
    page = visit(served.link(), locale=f"{language}-{language.upper()}", **PHONE)
    page.locator("main button.primary:focus").wait_for()
    assert page.locator("html").get_attribute("lang") == language

    def sound():
        assert violations(page) == []
        assert fits(page)

    sound()
    page.keyboard.press("Enter")
    title(page, words_of(language)["instructions"])
    sound()
    press(page, ["Enter"])
    page.locator("main [role=radio], main input").first.wait_for()
    sound()
    keys, expected = PRESSED["match"]
    press(page, keys[:-1])
    sound()
    page.keyboard.press(keys[-1])
    page.locator("output").wait_for()
    sound()
    wait_for_answers(page, served, 1)
    # What is stored does not depend on the language.
    assert expected.items() <= answers(served)[0].items()


def test_answers_survive_the_loss_of_the_network_and_a_closed_page(at_work, visit):
    served, page = at_work("yes-no", 4, allowed=("ERR_INTERNET_DISCONNECTED",))
    context = page.context
    context.set_offline(True)
    press(page, ["1"], then="Item 2")
    press(page, ["2"], then="One moment")
    page.locator("#sending:not([hidden])", has_text="Not sent yet: 2").wait_for()
    assert answers(served) == []
    context.set_offline(False)
    title(page, "Item 3")
    page.locator("#sending[hidden]").wait_for(state="attached")
    assert [item["match"] for item in answers(served)] == ["yes", "no"]
    # A page that is closed before its answer was sent sends it when it is opened again.
    context.set_offline(True)
    press(page, ["2"], then="Item 4")
    address = page.url
    page.close()
    context.set_offline(False)
    page = visit(address, context=context)
    title(page, "Instructions")
    press(page, ["Enter"], then="Item 4")
    press(page, ["1"], then="Done")
    assert [item["match"] for item in answers(served)] == ["yes", "no", "no", "yes"]


def test_a_refusal_is_seen_on_a_long_page_and_what_was_written_stays_to_be_put_right(at_work):
    served, page = at_work("quad-authoring", allowed=("422",), viewport={"width": 390, "height": 500})
    page.get_by_role("button", name="Send answer").scroll_into_view_if_needed()
    assert page.evaluate("scrollY") > 300
    page.get_by_role("button", name="Send answer").click()
    notice = page.locator("#notice.alert", has_text="Not answered yet")
    notice.wait_for()
    box = notice.bounding_box()
    assert 0 <= box["y"] < 500 - box["height"]
    page.evaluate("scrollTo(0, 0)")
    page.locator("h1").focus()
    press(page, ["1", "text:a dog", "Enter", "2", "text:a cat", "Enter", "1", "1", "Enter"])
    page.locator("#notice.alert", has_text="the same words").wait_for()
    second = page.locator("textarea").nth(1)
    assert second.input_value() == "a cat"
    second.fill("dog a")
    page.keyboard.press("Enter")
    title(page, "Done")
    assert answers(served)[0]["second_caption"] == "dog a"


#: What is filled in of a half-written answer of each form, and how the page shows it.
HALVES = {
    "quad-authoring": ["1", "text:a dog sees a cat", "Enter", "2", "text:a cat sees"],
    "error-spans": ["2", "ArrowRight", "Shift+ArrowRight", "3"],
}
_FILLED = """[...document.querySelectorAll(
    'main fieldset:not([hidden]) :is(input:checked, textarea, .word.marked)'
  )].map((each) => [each.id, each.textContent, each.dataset.label, each.type === 'textarea' && each.value])"""


@pytest.mark.parametrize("form", HALVES)
def test_a_half_written_answer_survives_a_reload_and_goes_when_it_is_stored(at_work, form):
    served, page = at_work(form, 2)
    press(page, HALVES[form])
    filled = page.evaluate(_FILLED)
    assert len(filled) >= 2, filled
    page.wait_for_timeout(700)
    page.reload()
    title(page, "Item 1")
    assert page.evaluate(_FILLED) == filled
    kept = "Object.keys(localStorage).filter((name) => name.startsWith('counterfoil-draft/')).length"
    assert page.evaluate(kept) == 1
    if form == "quad-authoring":
        page.locator("#second_caption-text").fill("a cat sees a dog")
        page.locator("#swap-0").check()
        page.locator("#predicates-1").check()
    press(page, ["Enter"], then="Item 2")
    wait_for_answers(page, served, 1)
    assert page.evaluate(kept) == 0
    (seconds,) = set(judgement_table(served.database, served.campaign)["seconds"].to_pylist())
    # The time before the reload counts.
    assert seconds > 0.3 + 0.7


def test_arrows_and_quick_presses_answer_nothing_by_accident(serve, visit):
    served = serve("yes-no", n=3)
    page = visit(served.link())
    page.locator("main button.primary:focus").wait_for()
    # A click as soon as the page changes, and a key that is held, do not skip the instructions.
    page.evaluate(
        "new MutationObserver(() => document.querySelector('main button.primary')?.click())"
        ".observe(document.querySelector('main'), {childList: true})"
    )
    page.keyboard.down("Enter")
    title(page, "Instructions")
    page.wait_for_timeout(_SETTLED)
    page.keyboard.down("Enter")
    page.keyboard.up("Enter")
    page.wait_for_timeout(100)
    title(page, "Instructions")
    page.keyboard.press("Enter")
    title(page, "Item 1")
    # Fields take nothing before the image is there.
    page.locator("[inert]").wait_for(state="detached")
    page.locator("input").first.focus()
    press(page, ["ArrowDown", "ArrowDown"])
    page.locator("main input:checked").wait_for(state="attached")
    page.wait_for_timeout(100)
    assert answers(served) == []
    # A second press so soon was meant for the item before. The page's clock stands, however slow the machine.
    page.wait_for_timeout(_SETTLED)
    page.evaluate("start = performance.now(); performance.now = () => start")
    for milliseconds, item in ((0, "Item 2"), (1000, "Item 3")):
        page.evaluate("after => { performance.now = () => start + after }", milliseconds)
        page.keyboard.press("1")
        title(page, item)
        page.locator("[inert]").wait_for(state="detached")
        page.keyboard.press("1")
        wait_for_answers(page, served, 1 + milliseconds // 1000)
    page.evaluate("performance.now = () => start + 1280")
    page.keyboard.press("2")
    page.locator("#notice.alert", has_text="Choose once more").wait_for()
    page.evaluate("performance.now = () => start + 9000")
    press(page, ["2"], then="Done")
    assert [item["match"] for item in answers(served)] == ["yes", "yes", "no"]


def test_a_phone_enlarges_without_answering_and_counts_only_time_in_sight(serve, visit):
    served = serve("best-of-k", n=2)
    page = visit(served.link(), has_touch=True, is_mobile=True, **PHONE)
    for heading in ("Instructions", "Item 1"):
        page.locator("main button.primary").tap()
        title(page, heading)
        page.wait_for_timeout(_SETTLED)
    for button, image in (("Enlarge Image 2", "Image 2"), ("Next image", "Image 3")):
        page.get_by_role("button", name=button).tap()
        assert page.locator("#enlarged img").get_attribute("alt") == image
    page.get_by_role("button", name="Close").tap()
    hide = """Object.defineProperty(document, 'hidden', {get: () => %s, configurable: true});
        document.dispatchEvent(new Event('visibilitychange'))"""
    page.evaluate(hide % "true")
    page.wait_for_timeout(1500)
    page.evaluate(hide % "false")
    assert answers(served) == []
    begun = page.evaluate("performance.now()")
    page.locator("label", has_text="None of them fits").tap()
    wait_for_answers(page, served, 1)
    (seconds,) = judgement_table(served.database, served.campaign)["seconds"].to_pylist()
    assert 0.3 < seconds < begun / 1000 - 1.2


def test_words_are_marked_by_pointer_and_counted_in_characters(at_work):
    served, page = at_work("error-spans")
    press(page, ["2"])
    # After a character beyond 16 bits, places of Python and of JavaScript differ.
    page.get_by_role("button", name="naïve").hover()
    page.mouse.down()
    page.get_by_role("button", name="caption", exact=True).hover()
    page.mouse.up()
    page.get_by_role("button", name="attribute").click()
    page.get_by_role("button", name="disc", exact=True).click()
    for name in ("object", "Remove"):
        page.get_by_role("button", name=name).click()
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Send answer").click()
    title(page, "Done")
    (error,) = answers(served)[0]["errors"]
    caption = served.campaign.items[0].cells["caption"]
    assert (caption[error["start"] : error["end"]], error["label"]) == ("naïve caption", "attribute")


def test_an_image_that_does_not_come_is_waited_for_and_can_be_said_to_be_unseen(at_work, violations):
    served, page = at_work("which-image", 3, allowed=("Failed to load resource",), **PHONE)
    press(page, ["1"], then="Item 2")
    wait_for_answers(page, served, 1)
    page.route("**/media/*", lambda route: route.fulfill(status=503))
    page.reload()
    title(page, "Item 2")
    page.locator(".images-state", has_text="loading").wait_for()
    # Nothing can be answered as if it had been seen.
    press(page, ["1", "Enter"])
    page.locator(".option").first.click(force=True)
    page.locator(".images-state", has_text="could not be loaded").wait_for()
    assert page.locator("main input:checked").count() == 0
    assert len(answers(served)) == 1
    assert violations(page) == []
    assert fits(page)
    page.get_by_role("button", name="I cannot see this").press("Enter")
    title(page, "Item 3")
    wait_for_answers(page, served, 2)
    assert answers(served)[1] == {"fits": NOT_VISIBLE}
    page.locator(".images-state", has_text="could not be loaded").wait_for()
    page.wait_for_timeout(1500)
    page.unroute("**/media/*")
    seen = time.monotonic()
    page.get_by_role("button", name="Try again").click()
    page.locator(".images-state[hidden]").wait_for(state="attached")
    press(page, ["2"], then="Done")
    (seconds,) = judgement_table(served.database, served.campaign)["seconds"].to_pylist()[2:]
    # The time in which there was nothing to see does not count.
    assert seconds < time.monotonic() - seen


def test_an_image_that_fails_at_first_comes_by_itself(serve, visit):
    page = visit(serve("yes-no", n=1).link(), allowed=("Failed to load resource",))
    page.route("**/media/*", lambda route: route.fulfill(status=503), times=2)
    begin(page)
    page.locator(".images-state[hidden]").wait_for(state="attached")
    assert page.evaluate("document.querySelector('main img').naturalWidth") == 320
    press(page, ["1"], then="Done")


@pytest.mark.parametrize("apart", [0, 430], ids=["at once", "slow system"])
def test_a_double_click_answers_one_item(at_work, apart):
    served, page = at_work("yes-no", 3)
    page.wait_for_timeout(_SETTLED)

    def press_mouse(count):
        """A click on the first answer, as the system counts it."""
        box = page.locator("main label").first.bounding_box()
        page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
        page.mouse.down(click_count=count)
        page.mouse.up(click_count=count)

    press_mouse(1)
    page.wait_for_timeout(apart)
    press_mouse(2)
    title(page, "Item 2")
    if apart:
        page.locator("#notice.alert", has_text="Choose once more").wait_for()
    assert page.locator("main input:checked").count() == 0
    wait_for_answers(page, served, 1)
    # However long the system calls it a double click: the second of two clicks is asked for again.
    page.wait_for_timeout(900)
    press_mouse(2)
    page.wait_for_timeout(200)
    assert len(answers(served)) == 1
    assert page.locator("main input:checked").count() == 0
    press_mouse(1)
    title(page, "Item 3")
    wait_for_answers(page, served, 2)
    press(page, ["1"], then="Done")


def test_the_last_answer_is_changed_by_keyboard_with_a_comment(at_work, violations):
    served, page = at_work("quad-authoring", 2, **PHONE)
    press(page, PRESSED["quad-authoring"][0], then="Item 2")
    page.locator("#undo:not([hidden])").wait_for()
    page.locator("h1").focus()
    page.keyboard.press("u")
    title(page, "Your answer to item 1")
    assert page.locator("main input:checked").count() >= 1
    page.locator("#second_caption-text").fill("a cat sees two dogs a")
    page.get_by_role("button", name="Leave it as it was").click()
    title(page, "Item 2")
    page.get_by_role("button", name="Change my last answer").click()
    page.locator("#second_caption-text").fill("the cat sees the dog")
    page.locator("#first_caption-text").fill("the dog sees the cat")
    page.locator("summary", has_text="Comment").press("Enter")
    page.locator("#comment").wait_for()
    assert violations(page) == []
    assert fits(page)
    page.locator("#comment").fill("Looked again.")
    press(page, ["Enter"], then="Item 2")
    assert set(judgement_table(served.database, served.campaign)["comment"].to_pylist()) == {"Looked again."}
    (answer,) = answers(served)
    assert "the cat sees the dog" in answer.values()


def test_who_finishes_early_keeps_what_they_did(at_work, violations):
    served, page = at_work("yes-no", 3, **PHONE)
    press(page, ["1"], then="Item 2")
    wait_for_answers(page, served, 1)
    page.get_by_role("button", name="Finish here").press("Enter")
    assert violations(page) == []
    assert fits(page)
    page.get_by_role("button", name="Finish with what I did").press("Enter")
    title(page, "Finished")
    assert page.locator("output").text_content() == "DONE-1"
    page.reload()
    title(page, "Finished")
    assert violations(page) == []
    assert len(answers(served)) == 1
