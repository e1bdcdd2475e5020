"""`counterfoil evaluate chat:...` as a user meets it: cost, errors of one line, killed and resumed."""

import hashlib
import json

import numpy as np
import PIL.Image
import pytest

import chat_server
from chat_server import KEY

QUICK = ("--set", "wait=0.002", "--set", "concurrency=4")
N = 8


@pytest.fixture(scope="module")
def server():
    with chat_server.running() as result:
        yield result


@pytest.fixture
def pairs(tmp_path):
    """Quads of a user's own in a table, and what their images show."""
    rows, shows = ["image,caption,negative_caption,negative_image"], {}
    for number in range(N):
        files = []
        for side in (0, 1):
            path = tmp_path / f"{number}_{side}.png"
            PIL.Image.fromarray(np.full((8, 8, 3), (30 * number, 200 * side, 90), dtype=np.uint8)).save(path)
            shows[hashlib.sha256(path.read_bytes()).hexdigest()] = [f"thing {number} on side {side}"]
            files.append(path.name)
        rows.append(f"{files[0]},thing {number} on side 0,thing {number} on side 1,{files[1]}")
    (tmp_path / "pairs.csv").write_text("\n".join(rows) + "\n")
    return tmp_path / "pairs.csv", shows


def evaluate(server, pairs, *more, model="looker"):
    chat = f"chat:{server.url}#{model}"
    return ("evaluate", chat, "pairs", "--data", pairs[0], *QUICK, "--draws", "100", *more)


def test_a_run_ends_with_what_it_cost_and_writes_no_key(server, pairs, counterfoil, tmp_path, monkeypatch):
    monkeypatch.setenv("COUNTERFOIL_API_KEY", KEY)
    server.set(shows=pairs[1], logprobs=False)
    prices = ("--set", "input_price=2", "--set", "output_price=10")
    said = counterfoil(*evaluate(server, pairs, *prices, "--out", tmp_path / "run", "--json", "-"))
    assert (said.code, json.loads(said.out)["measures"]["group"]["value"]) == (0, 1.0)
    assert (
        f"#looker: answers read as text; {4 * N + 1} requests (0 of them again), 0 answers from before; "
        f"{100 * (4 * N + 1):,} + {2 * (4 * N + 1)} tokens; cost 0.0073; 0 refused, 0 not readable"
    ) in said.err
    assert {entry["key"] for entry in server.log()} == {f"Bearer {KEY}"}
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(written) > 4 * N
    assert not any(KEY.encode() in path.read_bytes() for path in written)
    assert KEY not in said.out + said.err
    assert '"read": "text"' in (tmp_path / "run" / "pairs" / "manifest.json").read_text()

    again = counterfoil(*evaluate(server, pairs, *prices, "--json", "-"))
    kept = f"{4 * N + 1} answers from before; 0 + 0 tokens; cost 0.0000"
    assert f"0 requests (0 of them again), {kept}" in again.err
    assert json.loads(again.out)["measures"] == json.loads(said.out)["measures"]


def test_a_key_by_the_name_of_its_variable(server, pairs, counterfoil, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)
    server.set(shows=pairs[1])
    assert counterfoil(*evaluate(server, pairs, "--api-key-env", "MY_KEY")).code == 0
    assert {entry["key"] for entry in server.log()} == {f"Bearer {KEY}"}
    words = "the environment variable is not set; given: NO_SUCH_KEY"
    counterfoil.refused(*evaluate(server, pairs, "--api-key-env", "NO_SUCH_KEY"), says=words)
    said = counterfoil("evaluate", "blind:length", "pairs", "--data", pairs[0], "--api-key-env", "MY_KEY")
    assert "--api-key-env is for chat endpoints" in said.err


@pytest.mark.parametrize(("protocol", "requests"), [("yes-no", 4 * N), ("choose", 4 * N), ("two-images", N)])
def test_a_limit_says_how_many_requests_the_whole_takes(server, pairs, counterfoil, protocol, requests):
    server.set(shows=pairs[1])
    command = evaluate(server, pairs, "--set", f"protocol={protocol}", "--limit", 2)
    said = counterfoil(*command)
    probe = protocol == "yes-no"
    assert (said.code, len(server.log())) == (0, requests // 4 + probe)
    assert f"all {N} questions would take about " in said.err
    assert f" at this speed and {requests} requests\n" in said.err
    # Of answers that were kept the speed is not known.
    assert f"all {N} questions would take about {requests} requests\n" in counterfoil(*command).err
    assert len(server.log()) == requests // 4 + probe


@pytest.mark.parametrize("protocol", ["yes-no", "choose", "two-images"])
def test_refusals_are_an_error_wrong_or_left_out_by_name(server, pairs, counterfoil, protocol):
    server.set(shows=pairs[1], logprobs=False, refuse=["thing 3 on side 0"], babble=["thing 5 on side 1"])
    command = evaluate(server, pairs, "--set", f"protocol={protocol}", "--json", "-")
    said = counterfoil(*command)
    assert (said.code, said.out) == (2, "")
    assert f"questions without an answer: refused, or not readable; given: 2 of {N}" in said.err
    sent = len(server.log())
    for policy, value, n in (("wrong", 1 - 2 / N, N), ("leave-out", 1.0, N - 2)):
        said = counterfoil(*command, "--unanswered", policy)
        result = json.loads(said.out)
        assert (result["measures"]["group"]["value"], result["measures"]["group"]["n"]) == (value, n)
        assert result["provenance"]["benchmark"]["unanswered"] == {"questions": 2, "policy": policy}
        assert f"pairs: 2 of {N} questions have no answer" in said.err
    # Nothing was sent again.
    assert len(server.log()) == sent


def test_an_endpoint_that_is_down_is_one_line(pairs, counterfoil, monkeypatch):
    waited = []
    monkeypatch.setattr("counterfoil.models.chat.http_client.Client._sleep", lambda _, s: waited.append(s))
    chat = "chat:http://127.0.0.1:9/v1#looker"
    said = counterfoil("evaluate", chat, "pairs", "--data", pairs[0], "--set", "wait=20")
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert f"{chat}: the endpoint cannot be reached; given: " in said.err
    # It is not tried again, as one that answers with an error is.
    assert not any(waited)
