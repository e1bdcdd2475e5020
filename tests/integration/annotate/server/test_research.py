"""The researcher's routes: nothing without the token, decisions with the page's header, no ids of people."""

import re

import pytest

from annotate.small_campaigns import Worker
from counterfoil.annotate.answering import running
from counterfoil.annotate.answers import counts
from counterfoil.annotate.review import adjudicated, reviews
from counterfoil.annotate.server.research import BY, COOKIE, CSRF_HEADER, SESSION, OverviewCache
from counterfoil.annotate.status import read_overview
from refusals import refuses

pytestmark = pytest.mark.usefixtures("few_draws")


@pytest.fixture
def judged(site):
    """A site on which two people judged the three pairs, and differ on one."""
    Worker(site.database, site.campaign, 1).do()
    odd = site.campaign.items[0].id
    Worker(site.database, site.campaign, 2, judge=lambda item: "no" if item.id == odd else "yes").do()
    return site


def logged_in(site):
    """The header that the page sends with a post, after a log-in that leaves a cookie in the client."""
    reply = site.client.post("/research/login", data={"token": site.campaign.secrets["token"]})
    assert (reply.status_code, reply.headers["location"]) == (303, "/research")
    page = site.client.get("/research")
    assert page.status_code == 200, page.text
    (secret,) = re.findall(r'<meta name="form" content="([0-9a-f]+)">', page.text)
    return {CSRF_HEADER: secret}


def research_routes(app):
    """Method and path of every route of the researcher."""
    for path, operations in app.openapi()["paths"].items():
        if path.startswith("/api/research"):
            yield from ((method.upper(), path) for method in operations)
    pages = ("/research", "/research/disputes", "/research/image/a.png", "/research/people/a")
    yield from (("GET", path) for path in pages)
    yield "POST", "/research/logout"


def test_one_persons_answers_are_shown_with_their_images(site_of):
    site = site_of("which-image", n=2)
    for number in (1, 2):
        token = site.token(number)
        given = site.given(token, {"fits": number - 1}, seconds=4.5, comment="Is it <b>dark</b>?")
        site.clock[0] += 10
        assert site.client.post(f"/api/work/{token}/answers", json=given).json()["accepted"]
    logged_in(site)
    first = read_overview(site.database, site.campaign, now=0, draws=10).status.persons[0].person
    assert f"/research/people/{first}" in site.client.get("/research").text
    page = site.client.get(f"/research/people/{first}").text
    images = set(re.findall(r'src="(/research/image/[^"]+)"', page))
    assert [site.client.get(item).status_code for item in images] == [200, 200]
    assert "of 1 others" in page
    once = ("<section", "✓ chosen", "4.5 s", "Is it &lt;b&gt;dark&lt;/b&gt;?")
    assert [page.count(item) for item in once] == [1] * len(once)
    assert site.client.get("/research/people/unknown").status_code == 404


def test_every_route_is_refused_without_the_token(judged):
    routes = list(research_routes(judged.client.app))
    assert len(routes) >= 8
    for method, path in routes:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": f"{COOKIE}=9999999999.00"}):
            sent = {} if method == "POST" else None
            reply = judged.client.request(method, path, headers=headers, json=sent)
            assert reply.status_code == 401, (method, path, headers)
            assert "Fleiss" not in reply.text
        judged.clock[0] += 61  # wrong tokens from one address are counted


def test_the_cookie_is_no_scripts_and_no_other_sites_and_ends(judged):
    reply = judged.client.post("/research/login", data={"token": judged.campaign.secrets["token"]})
    cookie = reply.headers["set-cookie"].lower()
    assert all(mark in cookie for mark in ("httponly", "samesite=strict"))
    assert judged.campaign.secrets["token"].lower() not in cookie
    assert judged.client.get("/research").status_code == 200
    judged.clock[0] += SESSION + 2
    assert judged.client.get("/research").status_code == 401


def test_a_post_by_cookie_needs_the_header_of_its_session(judged):
    header = logged_in(judged)
    path, value = "/api/research/state", {"state": "paused"}
    for headers in ({}, {CSRF_HEADER: "0" * 64}, {**header, "origin": "https://evil.example"}):
        assert judged.client.post(path, json=value, headers=headers).status_code == 403
    assert running(judged.database) == "open"
    assert judged.client.post(path, json=value, headers=header).status_code == 200
    assert running(judged.database) == "paused"
    assert judged.client.post("/research/logout", headers=header).status_code == 204
    assert judged.client.get("/research").status_code == 401


def test_a_script_sends_the_token_itself(judged):
    reply = judged.client.post("/api/research/state", json={"state": "paused"}, headers=judged.bearer)
    assert (reply.status_code, running(judged.database)) == (200, "paused")


def test_decisions_on_the_page_are_stored_and_shown(judged):
    header = logged_in(judged)
    persons = read_overview(judged.database, judged.campaign, now=0, draws=10).status.persons
    script = {"reason": "<script>alert(1)</script>"}
    cases = (0, "approved", {}, 200), (1, "rejected", {}, 422), (1, "rejected", script, 200)
    for number, decision, more, status in cases:
        given = {"person": persons[number].person, "decision": decision, **more}
        reply = judged.client.post("/api/research/reviews", json=given, headers=header)
        assert reply.status_code == status, reply.text
    assert {item.by for item in reviews(judged.database).values()} == {BY}
    assert counts(judged.database).set_aside == 3
    page = judged.client.get("/research").text
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script>alert" not in page


def test_items_are_decided_on_a_page_of_their_own(judged):
    header = logged_in(judged)
    item = judged.campaign.items[0].id
    page = judged.client.get("/research/disputes", params={"item": item})
    assert "Disagreement 1 of 1" in page.text
    (image,) = re.findall(r'src="(/research/image/[^"]+)"', page.text)
    assert judged.client.get(image).status_code == 200
    for odd in ("/research/image/..%2Fsecrets.json", "/research/image/secrets.json"):
        assert judged.client.get(odd).status_code == 404
    given = {"item": item, "answer": "no", "note": "It is not."}
    assert judged.client.post("/api/research/adjudications", json=given, headers=header).status_code == 200
    (made,) = adjudicated(judged.database, judged.campaign).values()
    assert (made.answer, made.note, made.by) == ("no", "It is not.", BY)
    assert "Decided " in judged.client.get("/research/disputes").text
    assert judged.client.get("/research/disputes", params={"item": "nothing"}).status_code == 404


def test_the_overview_is_made_once_for_many_and_anew_after_a_decision(judged):
    made = []

    def make():
        made.append(read_overview(judged.database, judged.campaign, now=judged.clock[0], draws=50))
        return made[-1]

    cache = OverviewCache(make)
    assert all(cache.latest() is made[0] for _ in range(20))
    cache.outdate()
    assert cache.latest() is made[1]
    assert len(made) == 2
    refuses("", OverviewCache(lambda: 1 / 0).latest, error=ZeroDivisionError)
