"""Who enters by a platform's address, and where they go afterwards."""

from dataclasses import dataclass
from urllib.parse import parse_qs, urlsplit

import pytest

from counterfoil.annotate.platforms.base import OUTCOMES, Platform
from counterfoil.annotate.platforms.registry import PLATFORMS, PlatformEntry, campaign_platform
from counterfoil.errors import InputError, UnknownNameError
from refusals import refuses

PROLIFIC = [("PROLIFIC_PID", "5f8a"), ("STUDY_ID", "60a"), ("SESSION_ID", "61b")]
ENTERING = {
    "panel": [("person", "ann")],
    "sona": [("sona_id", "123")],
    "connect": [("participantId", "p"), ("projectId", "s"), ("assignmentId", "a")],
    "prolific": PROLIFIC,
}


def test_each_platform_keeps_the_contract():
    assert set(ENTERING) == set(PLATFORMS)
    for name, given in ENTERING.items():
        platform = PLATFORMS[name].platform()
        assert isinstance(platform, Platform)
        visit = platform.visit([("campaign", "7"), *given])
        assert visit.person == given[0][1]
        assert all(platform.leave(visit, outcome).code == "" for outcome in OUTCOMES)
        address = "https://example.org/enter?campaign=7"
        assert platform.entry(address).startswith(address)


def test_settings_of_a_link_in_whose_address_ids_keep_their_place():
    link = PLATFORMS["connect"].platform({"done": "https://c.example/complete?code={code}", "completed": "K"})
    visit = link.visit(ENTERING["connect"])
    assert (visit.person, visit.study, visit.submission) == ("p", "s", "a")
    assert link.leave(visit, "screened_out").address == "https://c.example/complete?code=K"
    assert link.leave(visit, "no_consent").address == ""
    link = PLATFORMS["sona"].platform({"done": "https://uni.example/credit?code={code}&survey_code={person}"})
    visit = link.visit([("sona_id", "1&experiment_id=9#x/../")])
    parts = urlsplit(link.leave(visit, "completed").address)
    assert parse_qs(parts.query)["survey_code"] == ["1&experiment_id=9#x/../"]
    assert (parts.hostname, parts.fragment) == ("uni.example", "")


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("connect", {"finish": "x"}, "platform connect: unknown key; given: finish"),
        ("connect", {"name": "x"}, "unknown key; given: name"),
        ("panel", {"done": "https://c.example/{who}"}, r"placeholder; given: \{who\}; allowed: \{code\}"),
        ("panel", {"done": "ftp://h.example/{code}"}, "not an address of a page"),
        ("panel", {"study": "person"}, "two parameters of one name"),
        ("sona", {"done": "https://uni.example/credit?survey_code=X"}, r"write survey_code=\{person\}"),
    ],
)
def test_settings_are_checked(name, settings, message):
    refuses(message, PLATFORMS[name].platform, settings, error=InputError)


def test_a_recipe_names_platform_and_completion_and_other_classes_are_refused():
    assert campaign_platform("prolific", "C1") == PLATFORMS["prolific"].platform({"completed": "C1"})
    both = campaign_platform("panel", "done=https://c.example/?cc={code}&x=1, completed=C1, person=pid")
    assert both.leave(both.visit([("pid", "ann")]), "completed").address == "https://c.example/?cc=C1&x=1"
    with pytest.raises(InputError, match="platform prolific, key 'completed': no value"):
        campaign_platform("prolific", "completed=")
    with pytest.raises(UnknownNameError, match="entry of the campaign: unknown platform; given: prolifik"):
        campaign_platform("prolifik")
    with pytest.raises(InputError, match="platform odd: its class is no platform"):
        PlatformEntry("odd", "", f"{__name__}:Nothing").platform()


@dataclass(frozen=True)
class Nothing:
    name: str


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([], "missing in the address; open the link on prolific"),
        ([("PROLIFIC_PID", "  ")], "missing in the address"),
        ([("PROLIFIC_PID", "{{%PROLIFIC_PID%}}")], "the placeholder was not replaced by an id"),
        ([("PROLIFIC_PID", "a"), ("PROLIFIC_PID", "b")], "has two values; given: a, b"),
        ([("PROLIFIC_PID", "a b")], "not an id"),
        ([("PROLIFIC_PID", "a\x00")], "not an id"),
        ([("PROLIFIC_PID", "a\u202eb")], "not an id"),
        ([("PROLIFIC_PID", "<script>")], "not an id"),
        ([("PROLIFIC_PID", "x" * 201)], "not an id"),
    ],
)
def test_parameters_that_say_nobody(given, message):
    visit = PLATFORMS["prolific"].platform().visit
    words = refuses(message, visit, [*given, *PROLIFIC[1:]], error=InputError)
    assert words.startswith("prolific, parameter 'PROLIFIC_PID'")


def test_prolific_sends_people_back_with_the_code_of_the_outcome():
    codes = {"completed": "C1", "screened_out": "S2", "failed_checks": "F3"}
    prolific = PLATFORMS["prolific"].platform(codes)
    visit = prolific.visit(PROLIFIC)
    address = "https://app.prolific.com/submissions/complete?cc="
    ends = {outcome: prolific.leave(visit, outcome) for outcome in OUTCOMES}
    expected = {outcome: address + code for outcome, code in codes.items()} | {"no_consent": ""}
    assert {outcome: end.address for outcome, end in ends.items()} == expected
    assert prolific.entry("https://example.org/enter") == (
        "https://example.org/enter?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}"
        "&SESSION_ID={{%SESSION_ID%}}"
    )
    refuses("not an address over https", prolific.entry, "http://example.org/enter", error=InputError)
    with pytest.raises(InputError, match="of another study; given: 60a; allowed: 60b"):
        PLATFORMS["prolific"].platform({"study": "60b"}).visit(PROLIFIC)
