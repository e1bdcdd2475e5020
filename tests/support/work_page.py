"""The annotators' page in a browser, by keyboard."""

#: Milliseconds after which the page no longer takes a key for one that was meant for the page before.
_SETTLED = 300


def title(page, text):
    page.locator("main h1", has_text=text).wait_for()


def begin(page):
    """Agree, read, begin: every key waits for the page that it is for."""
    page.locator("main button.primary:focus").wait_for()
    page.keyboard.press("Enter")
    title(page, "Instructions")
    page.wait_for_timeout(_SETTLED)
    page.keyboard.press("Enter")
    title(page, "tem 1")
