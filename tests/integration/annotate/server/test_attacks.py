"""Attacks on the server, and strangers who type an id; what needs a browser is in test_work_in_browser."""

import json
from itertools import repeat

import pytest

from counterfoil.annotate.answers import judgement_table
from counterfoil.annotate.participants import make_links
from counterfoil.annotate.server.app import make_app
from counterfoil.annotate.server.security import LARGEST_BODY, MOST_WRONG
from counterfoil.jobs.annotate_campaign import annotate_readmit
from refusals import refuses
from served_campaign import NASTY

SQL = "x' OR '1'='1'; DROP TABLE people; --"


def stored(site):
    """How many answers are in the database."""
    return judgement_table(site.database, site.campaign).num_rows


def test_no_path_leads_to_a_file_of_the_campaign(site):
    site.token()
    paths = ["../secrets.json", "..%2fsecrets.json", "..\\secrets.json", "%5c..%5csecrets.json"]
    paths += ["%2e%2e%2f%2e%2e%2fcampaign.toml", "/etc/passwd", "%2fetc%2fpasswd"]
    paths += ["darkred.png", "darkred.png%00.txt", ""]
    for under in ("/media/", "/static/", "/static/../", "/work/"):
        site.clock[0] += 100
        for path in paths:
            reply = site.client.get(under + path)
            assert reply.status_code in (307, 404, 405), under + path
            assert "salt" not in reply.text
            assert "root:" not in reply.text


def test_what_is_no_answer_is_refused_in_one_line(site):
    places = (None, [0], True, [{"start": 0, "end": 3}])
    answers = ({}, [], {"match": 0, SQL: "x"}, *({"match": place} for place in places))
    changes = [("answer", answer) for answer in answers]
    changes += [("seconds", seconds) for seconds in (-1, "NaN", 1e300)]
    changes += [("key", ""), ("key", "k" * 101), ("lease", ""), ("more", 1)]
    token = site.token()
    for name, value in changes:
        reply = site.answer(token, **{"answer": {"match": 0}, name: value})
        assert (reply.status_code, list(reply.json())) == (422, ["error"]), (name, value)
        assert "\n" not in reply.json()["error"]
    assert stored(site) == 0


def test_giant_requests_are_refused_before_they_are_read(site):
    path = f"/api/work/{site.token()}/answers"
    kind = {"content-type": "application/json"}
    for content in (b"x" * (LARGEST_BODY + 1), repeat(b" " * 4096, 1_000)):
        assert site.client.post(path, content=content, headers=kind).status_code == 413
    assert site.client.post(path, content=b"{}", headers={**kind, "content-length": "-1"}).status_code == 400
    assert site.client.get("/work/" + "a" * 5_000).status_code == 414
    assert stored(site) == 0


def test_other_types_than_json_and_other_sites_are_refused(site):
    token = site.token()
    path = f"/api/work/{token}/answers"
    body = json.dumps(site.given(token, {"match": 0}, key=SQL))
    # What a form of any site can send without asking.
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        assert site.client.post(path, content=body, headers={"content-type": kind}).status_code == 415
    foreign = [{"origin": origin} for origin in ("https://evil.example", "null", "http://127.0.0.1:81")]
    for head in (*foreign, {"sec-fetch-site": "cross-site"}):
        reply = site.client.post(path, content=body, headers={"content-type": "application/json", **head})
        assert reply.status_code == 403, head
    assert stored(site) == 0
    own = {"content-type": "application/json", "origin": "http://127.0.0.1", "sec-fetch-site": "same-origin"}
    assert site.client.post(path, content=body, headers=own).json()["accepted"]


def test_names_that_were_pointed_here_are_not_answered(site):
    path = f"/work/{site.token()}"
    for host in ("evil.example", "study.example.evil.com", "", "a b", "user@study.example"):
        assert site.client.get(path, headers={"host": host}).status_code == 421
    for host in ("study.example", "STUDY.example:443", "localhost:8750", "[::1]:8750", "192.168.1.7:8750"):
        assert site.client.get(path, headers={"host": host}).status_code == 200


def test_guessing_is_slowed_down_and_right_tokens_always_pass(site):
    token = site.token()
    replies = [site.client.get(f"/enter/{i}-guess") for i in range(MOST_WRONG + 1)]
    assert [reply.status_code for reply in replies] == [404] * MOST_WRONG + [429]
    head = replies[-1].headers
    assert (head["retry-after"], head["content-type"]) == ("60", "text/html; charset=utf-8")
    blocked = site.client.get(f"/api/work/{token[:-3]}xyz")
    assert (blocked.status_code, list(blocked.json())) == (429, ["error"])
    # The same address: everybody behind it goes on, people and the researcher alike.
    assert site.client.get(f"/api/work/{token}").status_code == 200
    assert site.client.get(f"/enter/{make_links(site.campaign, 2)[1]}").status_code == 303
    assert site.client.get("/research/disputes", headers=site.bearer).status_code == 200
    assert site.client.get("/research").status_code == 401
    for given, status in (("wrong", 429), (site.campaign.secrets["token"], 303)):
        assert site.client.post("/research/login", data={"token": given}).status_code == status
    site.clock[0] += 61
    assert site.client.get("/enter/1-guess").status_code == 404


def test_one_beginning_is_guessed_no_faster_from_many_addresses(site):
    site.token()
    addresses = [f"10.0.0.{i}" for i in range(MOST_WRONG + 1)]
    guesses = [site.browser(item).get(f"/work/abcd{item}").status_code for item in addresses]
    assert guesses == [404] * MOST_WRONG + [429]


def test_codes_are_short_so_that_right_ones_wait_too(site_of):
    site = site_of(entry="open", code="tern")

    def enter(code):
        return site.client.post("/open", data={"code": code})

    token = enter("tern").headers["location"].rpartition("/")[2]
    tried = [enter(code).status_code for code in (*["gull"] * MOST_WRONG, "tern")]
    assert tried == [403] * MOST_WRONG + [429]
    assert site.client.get(f"/api/work/{token}").status_code == 200


def test_pages_of_other_sites_cannot_use_up_a_visitors_attempts(site):
    token = site.token()
    for _ in range(MOST_WRONG + 5):
        site.client.post("/api/work/guess/consent", json={}, headers={"origin": "https://evil.example"})
    assert site.client.get(f"/api/work/{token}").status_code == 200


def test_every_reply_has_its_headers_and_no_token_is_logged(site):
    token = site.token()
    paths = [f"/work/{token}", f"/api/work/{token}", site.work(token)["items"][0]["shown"][0]["content"]]
    paths += ["/static/work.js", "/nowhere", "/enter/x", "/openapi.json"]
    for path in paths:
        head = site.client.get(path).headers
        assert head["content-security-policy"].startswith("default-src 'none'"), path
        assert "unsafe" not in head["content-security-policy"]
        assert (head["referrer-policy"], head["x-content-type-options"]) == ("no-referrer", "nosniff")
        assert "set-cookie" not in head
        # Pages are shown in no frame.
        assert head["x-frame-options"] == "DENY"
        of_image = path.startswith("/media/")
        assert of_image or "frame-ancestors 'none'" in head["content-security-policy"]
        assert ("max-age" in head["cache-control"]) == of_image
    assert len(site.log) > len(paths)
    assert not any(token in line or "enter/x" in line for line in site.log)
    assert any(line.startswith("GET /api/work/{token} 200 ") for line in site.log)


def test_texts_are_text_in_every_page(site_of):
    site = site_of(title=NASTY, instructions=f"{NASTY} [x](javascript:alert(1)) ![y](https://evil.example/y)")
    token = site.token()
    page = site.client.get(f"/work/{token}").text
    for text in (page, site.client.get("/enter/<script>").text, site.client.get("/").text):
        assert not [item for item in ("<script>window", "<img src=x", 'href="javascript') if item in text]
    assert page.count("<script") == 2
    assert site.client.get("/docs").status_code == 404


#: Addresses by which a person of each platform comes.
ADDRESSES = {
    "sona": "/enter?sona_id=4711",
    "panel": "/enter?person=4711",
    "connect": "/enter?participantId=4711&projectId=p1&assignmentId=a1",
    "prolific": "/enter?PROLIFIC_PID=5f8a&STUDY_ID=60a&SESSION_ID=61b",
}


def token_of(reply):
    assert reply.status_code == 303, reply.text
    return reply.headers["location"].partition("?")[0].removeprefix("/work/")


@pytest.mark.parametrize("platform", ADDRESSES)
def test_who_knows_an_id_neither_enters_nor_reads_nor_withdraws(site_of, platform):
    site = site_of(entry=platform, completion="")
    own, other = site.browser(), site.browser()
    token = token_of(own.get(ADDRESSES[platform]))
    own.post(f"/api/work/{token}/consent", json={})
    answer = site.given(token, {"match": 0}, own)
    assert own.post(f"/api/work/{token}/answers", json=answer).json()["accepted"]
    refused = other.get(ADDRESSES[platform])
    assert (refused.status_code, "location" in refused.headers) == (403, False)
    assert refused.headers["content-type"].startswith("text/html")
    assert not any(secret in refused.text for secret in (token, "4711"))
    assert judgement_table(site.database, site.campaign).num_rows == 1
    # The person comes again in the browser that came first, and pages that are open go on.
    for item in (token_of(own.get(ADDRESSES[platform])), token):
        assert own.get(f"/api/work/{item}").json()["done"] == 1


def test_the_cookie_goes_where_people_enter_and_no_further(site_of):
    cookie = site_of(entry="sona", completion="").browser().get(ADDRESSES["sona"]).headers["set-cookie"]
    assert cookie.endswith("; HttpOnly; SameSite=Lax; Secure")
    assert "Path=/enter;" in cookie
    assert "set-cookie" not in site_of().client.get("/").headers


def test_guessing_ids_is_slowed_down_and_the_person_still_passes(site_of):
    site = site_of(entry="sona")
    own, other = site.browser("192.0.2.1"), site.browser("192.0.2.1")
    own.get(ADDRESSES["sona"])
    replies = [other.get(ADDRESSES["sona"]).status_code for _ in range(MOST_WRONG + 1)]
    assert replies == [403] * MOST_WRONG + [429]
    assert own.get(ADDRESSES["sona"]).status_code == 303


def test_the_researcher_lets_a_person_in_from_another_browser(site_of):
    site = site_of(entry="sona")
    own, other = site.browser(), site.browser()
    token = token_of(own.get(ADDRESSES["sona"]))
    annotate_readmit(site.campaign.folder, worker="4711")
    new = token_of(other.get(ADDRESSES["sona"]))
    assert other.get(f"/api/work/{new}").status_code == 200
    assert own.get(f"/api/work/{token}").status_code == 404
    assert own.get(ADDRESSES["sona"]).status_code == 403


def test_a_campaign_that_counts_on_signed_addresses_is_not_served_without_checking_them(site_of):
    site = site_of(entry="prolific")
    (site.campaign.folder / "platform_keys.json").write_text("{}")
    refuses("signed are no longer checked; remove the file", make_app, site.campaign, site.database)
