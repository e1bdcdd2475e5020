"""The routes of the annotators' page: what they show, take and hide, and their schema."""

import hashlib
import html
import json
import re
from dataclasses import asdict
from pathlib import Path
from unittest.mock import Mock

import hypothesis
import pytest
from hypothesis import strategies
from starlette.testclient import TestClient

from counterfoil.annotate import answering, participants
from counterfoil.annotate.answering import set_running
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.forms.registry import WORK_FORMS
from counterfoil.annotate.languages import LANGUAGES, phrases_of
from counterfoil.annotate.participants import make_links
from counterfoil.annotate.server.app import make_app
from counterfoil.annotate.server.work_pages import words_of
from counterfoil.annotate.tables import events, sa
from counterfoil.errors import DataError, StorageError
from served_campaign import CELLS


def test_nothing_in_a_view_gives_the_answer_away(site_of):
    site = site_of("best-of-k", onboarding={"best": ["0"]})
    text = json.dumps(site.work(site.token()))
    for name in ("darkred", "golden", "role", "onboarding 0", "test 0", ".png", "value"):
        assert name not in text
    sources = set(re.findall(r"/media/[^\"]+", text))
    assert len(sources) == 4
    for source in sources:
        head = site.client.get(source).headers
        assert (head["content-type"], "sandbox" in head["content-security-policy"]) == ("image/png", True)


def test_places_are_translated_in_what_opens_a_field(site_of):
    site = site_of("match")
    fields = site.work(site.token())["items"][0]["fields"]
    opens = [{}, {"match": [1, 2]}, {"shortcomings": [2]}, {"errors": [9]}]
    assert [field["when"] for field in fields] == opens


def test_an_open_link_asks_for_its_code(site_of):
    site = site_of(entry="open", code="sesame")
    assert site.client.get("/").headers["location"] == "/open"
    assert 'name="code"' in site.client.get("/open").text
    right = site.client.post("/open", data={"code": " sesame"})
    assert site.client.get(right.headers["location"]).status_code == 200
    # Without a code it lets everyone in.
    site = site_of(entry="open")
    assert 'name="code"' not in site.client.get("/open").text
    assert site.client.post("/open").status_code == 303
    assert site_of().client.get("/open").status_code == 404


def test_people_of_a_platform_go_back_to_it(site_of):
    site = site_of(entry="prolific", completion="C1X2", n=1)
    assert site.client.get("/enter?PROLIFIC_PID=5f8a").status_code == 422
    path = site.client.get("/enter?PROLIFIC_PID=5f8a&STUDY_ID=60a&SESSION_ID=61b").headers["location"]
    assert "5f8a" not in path
    page, _, query = path.partition("?")
    token = page.removeprefix("/work/")
    site.client.post(f"/api/work/{token}/consent?{query}", json={})
    answer = site.given(token, {"match": 0})
    view = site.client.post(f"/api/work/{token}/answers?{query}", json=answer).json()["work"]
    assert view["leave"]["address"] == "https://app.prolific.com/submissions/complete?cc=C1X2"
    # A visit is signed for its person: changed, or another's, it is none.
    other = site.client.get("/enter?PROLIFIC_PID=x&STUDY_ID=60a&SESSION_ID=9").headers["location"]
    for forged in (query + "0", "visit=e30.0", other.partition("?")[2]):
        assert site.client.get(f"/api/work/{token}?{forged}").json()["leave"] is None


@pytest.mark.parametrize(("what", "status"), [("the disk is full", 507), ("another process is writing", 503)])
def test_what_cannot_be_stored_is_not_acknowledged(site, monkeypatch, what, status):
    error = StorageError(what, where="postgresql://counterfoil@db.example/answers")
    token = site.token()
    with monkeypatch.context() as patch:
        patch.setattr(answering, "record_answer", Mock(side_effect=error))
        reply = site.answer(token, {"match": 0})
    assert (reply.status_code, what in reply.json()["error"]) == (status, True)
    assert "db.example" not in reply.text
    assert site.answer(token, {"match": 0}).json()["accepted"]


@pytest.mark.parametrize("error", [StorageError, DataError])
def test_people_learn_nothing_of_the_database_and_the_researcher_does(site, monkeypatch, error):
    what = "the database cannot be used: no route to db.example"
    fail, seen = Mock(side_effect=error(what, where="/srv/database.sqlite")), []
    app = make_app(site.campaign, site.database, trouble=seen.append)
    client = TestClient(app, "http://127.0.0.1", follow_redirects=False, raise_server_exceptions=False)
    token = site.token()
    monkeypatch.setattr(participants, "person_of", fail)
    monkeypatch.setattr(participants, "enter", fail)
    page = "text/html; charset=utf-8"
    paths = {f"/api/work/{token}x": "application/json", f"/work/{token}": page}
    for path, kind in {**paths, f"/enter/{make_links(site.campaign, 1)[0]}": page}.items():
        reply = client.get(path)
        assert (reply.status_code, reply.headers["content-type"]) == (503, kind)
        assert "the database cannot be used; nothing was stored" in reply.text
        assert not any(secret in reply.text for secret in ("db.example", "/srv"))
    assert len(seen) >= 3
    assert "db.example" in seen[0]


def test_all_languages_have_the_same_words_with_the_same_places():
    said = [words_of(language) for language in LANGUAGES]
    places = [{name: sorted(re.findall(r"\{\w+\}", text)) for name, text in own.items()} for own in said]
    assert all(item == places[0] for item in places)


def texts_of(shown, fields):
    """Labels, questions and options of a page, without the numbers of what is shown."""
    texts = {item["label"] for item in shown} | {field["prompt"] for field in fields}
    texts |= {option["label"] for field in fields for option in field["options"]}
    return {re.sub(r"^\d+: ", "", text) for text in texts} - {""}


def written_in_forms():
    """What forms say, with the settings that show more of them; no contents."""
    more = {"which-image": {"neither": True}, "match": {"rationale": False}, "preference": {"same": True}}
    written = set()
    for name, cells in CELLS.items():
        kinds = [cells, {"images": ["a.png", "b.png"], "captions": ["c"]}] if name == "choose" else [cells]
        if name == "preference":
            kinds.append({**cells, "image": "a.png", "caption": "c"})
        for settings in ({}, more.get(name, {})):
            form = WORK_FORMS[name].form(settings, where=name)
            pages = [asdict(form.page(WorkItem("1", item))) for item in kinds]
            written = written.union(*(texts_of(page["shown"], page["fields"]) for page in pages))
    return written


def test_every_language_has_every_phrase_of_forms_and_notices():
    notices = {*answering.NOTICES.values(), answering._ERROR, answering._UNSEEN_TEST}
    notices |= set(re.findall(r'Receipt\(False, \w+, "([^"]+)"', Path(answering.__file__).read_text()))
    assert len(notices) >= 7
    written = written_in_forms() | notices
    assert set(CELLS) == {entry.name for entry in WORK_FORMS.values()}
    for language in LANGUAGES[1:]:
        assert written <= set(phrases_of(language)), language
    known = [set(phrases_of(language)) for language in LANGUAGES[1:]]
    assert all(item == known[0] for item in known)


def test_a_page_of_any_form_has_no_english_left_in_it(site_of):
    phrases = {language: phrases_of(language).items() for language in LANGUAGES[1:]}
    english = {name: {text for text, other in own if text != other} for name, own in phrases.items()}
    for form in sorted(CELLS):
        site = site_of(form, languages=LANGUAGES)
        token = site.token()
        for language in english:
            view = site.client.get(f"/api/work/{token}", headers={"accept-language": language}).json()
            (item, *_) = view["items"]
            texts = texts_of(item["shown"], item["fields"])
            assert texts & {*phrases_of(language).values()}
            assert not texts & english[language], (form, language)
            # A field of spans is about the text that has its label.
            for field in item["fields"]:
                assert not field["text"] or field["text"] in {item["label"] for item in item["shown"]}
    set_running(site.database, "paused", 1.0)
    token = site.token(2)
    for language in english:
        accepts, phrases = {"accept-language": language}, phrases_of(language)
        paused = site.client.get(f"/api/work/{token}", headers=accepts).json()["notice"]
        assert paused == phrases[answering.NOTICES["paused"]]
        lost = site.client.get("/work/nowhere", headers=accepts).text
        assert html.escape(phrases["no such page; open the link that you were given once more"]) in lost


def test_consent_and_instructions_are_shown_in_one_language_alone(site_of):
    site = site_of(languages=("en", "de", "fr"), instructions="English words", pay_per_hour=9.0)
    folder = site.campaign.folder
    (folder / "consent.md").write_text("I agree. {pay}")
    (folder / "consent.de.md").write_text("Ich stimme zu. {pay}")
    (folder / "instructions.de.md").write_text("Deutsche Worte")
    token = site.token(agreed=False)
    own = {"English words", "Deutsche Worte", "I agree.", "Ich stimme zu."}
    seen = {}
    for accepted in ("en", "de-AT", "fr", "ja"):
        page = site.client.get(f"/work/{token}", headers={"accept-language": accepted}).text
        seen[accepted] = {item for item in own if item in page}
        in_german = "Sie erhalten USD 9.00 pro Arbeitsstunde" in page
        assert in_german == (accepted == "de-AT")
        assert ("You are paid USD 9.00 per hour" in page) != in_german
    english = {"English words", "I agree."}
    # A language without a text of its own gets the one for all.
    assert seen == {"en": english, "de-AT": own - english, "fr": english, "ja": english}
    # What was agreed to is noted by its digest, in the words that the person saw.
    for number, accepted in ((1, "de"), (2, "fr")):
        route = f"/api/work/{site.token(number, agreed=False)}/consent"
        site.client.post(route, json={}, headers={"accept-language": accepted})
    with site.database.reading() as connection:
        noted = sa.select(events.c.detail).where(events.c.kind == "consented").order_by(events.c.number)
        result = connection.execute(noted).scalars().all()
    texts = [site.campaign.consent_in(language) for language in ("de", "")]
    assert result == [hashlib.blake2b(text.encode(), digest_size=16).hexdigest() for text in texts]


@pytest.mark.filterwarnings("ignore")
def test_no_example_breaks_the_server_or_its_schema(site):
    """By examples that schemathesis draws."""
    schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not installed")
    names = ("not_a_server_error", "response_schema_conformance", "content_type_conformance")
    checks = [getattr(schemathesis.checks, name) for name in (*names, "status_code_conformance")]
    token = site.token()
    schema = schemathesis.openapi.from_asgi("/openapi.json", site.client.app, headers={"host": "localhost"})
    seen = {}
    for result in schema.get_all_operations():
        operation = result.ok()

        checked = list(hypothesis.HealthCheck)

        @hypothesis.settings(max_examples=10, deadline=None, database=None, suppress_health_check=checked)
        @hypothesis.seed(0)
        @hypothesis.given(operation.as_strategy(), strategies.booleans())
        def holds(case, known):
            if known and "token" in (case.path_parameters or {}):
                case.path_parameters["token"] = token
            # So many wrong tokens would be slowed down, which is another test's subject.
            site.clock[0] += 10
            case.headers = {**(case.headers or {}), "host": "localhost"}
            if known and case.operation.path.startswith("/api/research"):
                case.headers |= site.bearer
            reply = case.call()
            seen.setdefault(case.operation.label, set()).add(reply.status_code)
            case.validate_response(reply, checks=checks)

        holds()
    assert len(seen) == 8
    assert {401, 422} <= seen["POST /api/research/reviews"]
    assert {200, 404} <= seen["GET /api/work/{token}"]
    assert {404, 422} <= seen["POST /api/work/{token}/answers"]
