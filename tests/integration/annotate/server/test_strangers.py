"""Strangers at a campaign whose people come by ids that anybody can type: they do not become those people."""

import pytest

from counterfoil.annotate.answers import judgement_table
from counterfoil.annotate.server.app import make_app
from counterfoil.annotate.server.security import MOST_WRONG
from counterfoil.jobs.annotate_campaign import annotate_readmit
from refusals import refuses

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
    for each in (token_of(own.get(ADDRESSES[platform])), token):
        assert own.get(f"/api/work/{each}").json()["done"] == 1


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
    keys = site.campaign.folder / "platform_keys.json"
    keys.write_text("{}")
    refuses("signed are no longer checked; remove the file", make_app, site.campaign, site.database)
