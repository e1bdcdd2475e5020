"""`annotate serve` as a process: it says where it is, and stops with all answers in one file."""

import signal
import socket
import subprocess
import sys
import urllib.request

import pytest

from counterfoil.annotate.campaign import DATABASE
from counterfoil.errors import InputError
from counterfoil.jobs.annotate_campaign import addresses, campaign_links, serve_campaign
from refusals import refuses
from served_campaign import campaign_of

SERVE = (sys.executable, "-m", "counterfoil", "annotate", "serve")


def test_a_process_serves_says_where_and_stops(tmp_path):
    campaign = campaign_of(tmp_path / "campaign", "yes-no")
    command = [*SERVE, str(campaign.folder), "--port", "0", "--verbose"]
    served = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        printed = dict(served.stdout.readline().split() for _ in range(3))
        assert printed["token"] == campaign.secrets["token"]
        site = printed["researcher"].removesuffix("/research")
        (link,) = campaign_links(campaign.folder, 1, public_url=site).value
        with urllib.request.urlopen(link) as page:
            assert page.status == 200
            token = page.url.rpartition("/")[2]
        refuses("being served", serve_campaign, campaign.folder, port=0, error=InputError)
    finally:
        served.send_signal(signal.SIGINT)
        out, err = served.communicate(timeout=300)
    assert served.returncode == 0, err
    assert "GET /work/{token} 200" in err
    assert token not in out + err
    assert not campaign.folder.joinpath(f"{DATABASE}-wal").exists()


def test_addresses_that_cannot_be_served_are_refused(tmp_path):
    folder = campaign_of(tmp_path / "campaign", "yes-no").folder
    refuses("not the address of a site", serve_campaign, folder, public_url="study.example", error=InputError)
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(InputError, match="another --port"):
        serve_campaign(folder, port=taken.getsockname()[1])


def test_people_get_the_address_of_their_platform(tmp_path):
    def people(entry, site):
        return addresses(campaign_of(tmp_path / entry, "yes-no", entry=entry, completion=""), site).people

    assert people("open", "http://127.0.0.1:8750/") == "http://127.0.0.1:8750/open"
    assert people("prolific", "https://study.example").startswith("https://study.example/enter?PROLIFIC_PID=")
    assert people("connect", "http://127.0.0.1:8750") == "http://127.0.0.1:8750/enter"


def test_links_are_the_same_each_time_and_more_can_be_made(tmp_path):
    folder = campaign_of(tmp_path / "campaign", "yes-no").folder
    few, more = (campaign_links(folder, n).value for n in (3, 5))
    assert (more[:3], len(set(more))) == (few, 5)
    refuses("1 to 1,000,000", campaign_links, folder, 0, error=InputError)
