"""Chat endpoints as models, against a server of our own that speaks the protocol and has faults."""

import hashlib
import json
import math
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import httpx2
import numpy as np
import pytest

import chat_server
from chat_server import KEY, probability
from contracts import forms
from counterfoil import catalog
from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError, ModelError, ScoreError
from counterfoil.inputs.fields import secret
from counterfoil.models.base import Options
from counterfoil.models.chat import http_client
from counterfoil.models.chat.endpoint import ChatRequest, Endpoint
from counterfoil.models.chat.http_client import EndpointSettings, retry_after
from counterfoil.models.chat.protocols import option_orders
from hostile_server import hostile
from refusals import refuses

#: Waits of milliseconds, and patience, since on a busy machine any answer may be late.
QUICK = {"wait": "0.002", "timeout": "60", "concurrency": "4"}


@pytest.fixture(scope="module")
def server():
    with chat_server.running() as result:
        yield result


@pytest.fixture(scope="module")
def quads():
    return shown(forms.quads(6))


def shown(benchmark):
    """The same questions with pictures to open, and the captions that no two items share."""
    return replace(forms.shown(benchmark), captions=benchmark.captions)


def digests(benchmark):
    return [hashlib.sha256(image.read()).hexdigest() for image in benchmark.images]


def shows(benchmark):
    """What each image shows, by the questions: the right captions of a quad or a choice."""
    names, result = digests(benchmark), {}
    for texts, pictures in zip(*benchmark.paired.slots(), strict=True):
        for image, caption in zip(pictures, texts, strict=False):
            result.setdefault(names[image], []).append(benchmark.captions[caption].text)
    return result


def load(server, memory=None, **settings):
    options = {name: settings.pop(name) for name in ("unanswered", "seed", "api_key") if name in settings}
    model = settings.pop("model", "looker")
    return catalog.model(
        f"chat:{server.url}#{model}", Options(settings={**QUICK, **settings}, **options), memory=memory
    )


def expected(benchmark):
    """P(yes) of every pair, pair by pair."""
    captions, images = benchmark.listed.pairs()
    names = digests(benchmark)
    asked = zip(captions.ravel(), images.ravel(), strict=True)
    values = [probability(names[i], benchmark.captions[c].text) for c, i in asked]
    return np.reshape(values, captions.shape)


def test_log_probabilities_are_read_over_all_spellings(server, quads):
    server.set()
    model = load(server, api_key=KEY)
    answers = run(quads, model, session=Session(batch_size=5))
    p = expected(quads)
    np.testing.assert_allclose(answers.values, p, rtol=1e-12)
    # One small request finds out that there are log-probabilities; each distinct pair is sent once.
    assert len(server.log()) == 1 + 24
    assert {entry["key"] for entry in server.log()} == {f"Bearer {KEY}"}
    assert model.identity.options["read"] == "logprobs"
    assert answers.provenance["model"]["made_with"]["models"] == ["looker-2026"]
    assert KEY not in json.dumps(answers.provenance) + repr(model.identity)
    requests = "answers read as log-probabilities; 25 requests (0 of them again), 0 answers from before"
    assert model.spent() == f"{requests}; 2,500 + 50 tokens; 0 refused, 0 not readable"
    odds = run(quads, load(server, score="log-odds")).values
    np.testing.assert_allclose(odds, np.log(p) - np.log(0.95 * (1 - p)), rtol=1e-9)


def test_texts_are_read_where_no_log_probabilities_are_given(server, quads):
    server.set(shows=shows(quads), logprobs=False)
    model = load(server, input_price="2", output_price="10")
    np.testing.assert_array_equal(run(quads, model).values, np.broadcast_to(np.eye(2), (6, 2, 2)))
    assert model.identity.options["read"] == "text"
    assert "answers read as text" in model.spent()
    assert f"cost {(25 * 100 * 2 + 25 * 2 * 10) / 1e6:.4f}" in model.spent()
    # Answers that lose their log-probabilities are never mixed with texts.
    with pytest.raises(ModelError, match=r"without log-probabilities; given: .*--set read=text"):
        run(quads, load(server, read="logprobs"))


@pytest.mark.parametrize("fault", ["429", "500", "503", "cut", "half", "no json", "no choices"])
def test_faults_are_tried_again(server, quads, fault):
    server.set(faults=["", *[fault] * 4])
    model = load(server)
    np.testing.assert_allclose(run(quads, model).values, expected(quads), rtol=1e-12)
    assert model.endpoint.spent.retried == 4
    assert len(server.log()) == 1 + 24 + 4


def test_a_request_without_an_answer_is_tried_again(server, quads):
    server.set(faults=["", *["silent"] * 4])
    model = load(server, timeout="1")
    np.testing.assert_allclose(run(quads, model).values, expected(quads), rtol=1e-12)
    # On a busy machine an answer may come too late as well.
    assert sum(not entry["answered"] for entry in server.log()) == 4
    assert model.endpoint.spent.retried == len(server.log()) - (1 + 24) >= 4


def test_retry_after_is_honoured_by_all_requests(server, quads):
    server.set(faults=["", "429"])
    run(quads, load(server, concurrency="1"))
    times = [entry["time"] for entry in server.log()]
    assert times[2] - times[1] >= 0.29
    # The refusal is there before the answers to the other two that are under way.
    server.set(faults=["", "429", "late", "late"])
    run(quads, load(server, concurrency="3"))
    times = np.array([entry["time"] for entry in server.log()])
    # Besides the refused request only the two that were under way were sent before the wait was over.
    assert (times[1:] < times[1] + 0.29).sum() <= 3
    # A date to wait for is read.
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert 28 <= retry_after(httpx2.Headers({"Retry-After": later})) <= 30
    assert retry_after(httpx2.Headers({"Retry-After": "soon"})) == 0


def test_requests_keep_to_the_rate(server, quads):
    server.set()
    run(quads, load(server, rpm="1500", concurrency="8"))
    times = sorted(entry["time"] for entry in server.log())
    # 24 gaps of 40 ms, the first request being the one that finds out how answers are read.
    assert times[-1] - times[0] >= 0.9 * 24 * 0.04


def test_an_endpoint_that_stays_broken_ends_the_run_and_what_was_answered_is_kept(server, quads, tmp_path):
    server.set(faults=["", *[""] * 10, *["500"] * 60])
    with pytest.raises(ModelError, match=r"no answer after 3 tries; given: status 500: fault 500"):
        run(quads, load(server, tmp_path, retries="2", concurrency="1"))
    server.set()
    model = load(server, tmp_path)
    np.testing.assert_allclose(run(quads, model).values, expected(quads), rtol=1e-12)
    assert (len(server.log()), model.endpoint.spent.cached) == (14, 11)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("quota", r"the endpoint refuses the request; given: status 429: no money left"),
        ("401", r"refuses the key; given: status 401: Incorrect API key provided: \(key\)"),
        ("400", r"the endpoint refuses the request; given: status 400: fault 400"),
        ("404", r"no such model or address; given: status 404: fault 404"),
        ("context", r"longer than the model's context; given: status 500"),
    ],
)
def test_what_another_try_cannot_help_ends_the_run_at_once(server, quads, fault, message):
    server.set(faults=[fault] * 50)
    words = refuses(message, run, quads, load(server, api_key=KEY, concurrency="1"), error=ModelError)
    assert KEY not in words
    assert len(server.log()) == 1


def test_kept_answers_are_those_of_equal_requests(server, quads, tmp_path):
    server.set(shows=shows(quads))
    asked = ({}, {"question": "Is this {}?"}, {"read": "text"}, {"read": "text", "temperature": "0.5"})
    for number, settings in enumerate(asked):
        run(quads, load(server, tmp_path, api_key=KEY, **settings))
        assert len(server.log()) == 25 + 24 * number
    # Neither how requests are sent nor another key is part of them.
    run(quads, load(server, tmp_path, concurrency="1", rpm="100000", score="log-odds"))
    assert len(server.log()) == 97
    files = list((tmp_path / "chat").iterdir())
    assert len(files) == len(server.log())
    assert not any(KEY.encode() in path.read_bytes() for path in files)
    # A damaged file is asked for again, alone.
    files[0].write_text("{")
    for settings in asked:
        run(quads, load(server, tmp_path, **settings))
    assert len(server.log()) == 97 + 1


def test_refusals_and_unreadable_answers_are_counted_apart(server, quads):
    for logprobs in (True, False):
        server.set(shows=shows(quads), logprobs=logprobs, refuse=["caption 1 0"], babble=["caption 2 1"])
        read = {"read": "logprobs" if logprobs else "text"}
        with pytest.raises(ScoreError, match=r"without an answer.*given: 2 of 6; .*--unanswered wrong"):
            run(quads, load(server, **read))
        model = load(server, unanswered="leave-out", **read)
        answers = run(quads, model)
        # Both pairs of a caption lack one.
        assert (model.refused, model.unread) == (2, 2)
        assert answers.unanswered.tolist() == [False, True, True, False, False, False]
        assert np.isnan(answers.values).sum() == 4
    # A filter before the model refuses as well.
    server.set(faults=["", "filter"])
    model = load(server, unanswered="wrong", concurrency="1")
    answers = run(quads, model)
    assert (model.refused, model.unread, int(answers.unanswered.sum())) == (1, 0, 1)


@pytest.mark.parametrize("order", ["seeded", "balanced", "given"])
@pytest.mark.parametrize("protocol", ["choose", "two-images"])
def test_one_who_sees_gets_quads_right_in_any_order(server, quads, protocol, order):
    server.set(shows=shows(quads))
    answers = run(quads, load(server, protocol=protocol, order=order))
    assert all(right.all() for right in answers.right.values())
    assert len(server.log()) == 6 * (4 if protocol == "choose" else 1)
    assert answers.chance["group"] == (1 / 16 if protocol == "choose" else 1 / 2)


@pytest.mark.parametrize("asks", ["image", "caption"])
def test_choices_of_several(server, asks):
    choices = shown(forms.choices({"a": 5}, k=4, asks=asks))
    server.set(shows=shows(choices))
    assert run(choices, load(server, protocol="choose")).right["accuracy"].all()
    assert len(server.log()) == 5
    uneven = shown(forms.choices({"a": 3}, k=(4, 2, 3), asks=asks))
    server.set(shows=shows(uneven))
    assert run(uneven, load(server, protocol="choose")).right["accuracy"].all()
    server.set(always="B")
    assert run(choices, load(server, protocol="choose", order="given")).right["accuracy"].sum() == 0


def test_a_model_that_always_answers_the_first_letter_has_no_gain(server):
    quads = shown(forms.quads(24))
    server.set(always="A")
    right = run(quads, load(server, protocol="choose", concurrency="8")).right
    # Both images of a quad see their captions in one order, so one of two is right.
    assert (right["ipos2t"] ^ right["ineg2t"]).all()
    assert (right["tpos2i"] ^ right["tneg2i"]).all()
    assert 4 < right["ipos2t"].sum() < 20
    server.set(always="1A 2B")
    balanced = run(quads, load(server, protocol="two-images", order="balanced")).right
    assert balanced["ipos2t"].sum() == 12
    assert all(np.array_equal(balanced[name], balanced["ipos2t"]) for name in balanced)


def test_orders_depend_on_options_and_seed_alone():
    lists = [tuple(f"{number} {letter}" for letter in "abc") for number in range(60)]
    seeded = option_orders(lists, order="seeded", seed=1)
    assert option_orders(lists[::-1], order="seeded", seed=1) == seeded[::-1]
    assert option_orders(lists, order="seeded", seed=2) != seeded
    balanced = np.array(option_orders(lists, order="balanced", seed=1))
    assert [np.bincount(column).tolist() for column in balanced.T] == [[20, 20, 20]] * 3


def test_unread_picks_are_unanswered(server, quads):
    server.set(shows=shows(quads), babble=["caption 1 0"], refuse=["caption 4 1"])
    model = load(server, protocol="choose", unanswered="wrong")
    answers = run(quads, model)
    assert answers.unanswered.tolist() == [False, True, False, False, True, False]
    # Two lists of captions and one caption of each quad hold the words.
    assert (model.refused, model.unread) == (3, 3)
    assert [right[1] for right in answers.right.values()] == [False, False, False, True]


def test_the_answer_of_a_reasoning_model_stands_behind_its_thinking(server, quads):
    server.set(always="<think>Yes... or yes?</think>\n\nNo.", logprobs=False)
    np.testing.assert_array_equal(run(quads, load(server)).values, 0)
    server.set(always="Option A is odd, no.</think> I think it's B")
    picked = run(quads, load(server, protocol="choose", order="given")).right
    assert [right.all() for right in picked.values()] == [False, True, False, True]


def test_an_answer_that_was_cut_off_in_its_thinking_is_no_answer(server, quads):
    server.set(always="<think>Yes, there is", finish="length", logprobs=False)
    with pytest.raises(ModelError, match=r"cut off at 16 tokens.*given: <think>Yes, there is; .*--set"):
        run(quads, load(server))
    model = load(server, unanswered="wrong")
    assert run(quads, model).unanswered.all()
    assert (model.truncated, model.unread) == (24, 0)
    assert "24 cut off at 16 tokens" in model.spent()
    # What was said before the end counts.
    server.set(always="Yes, it shows", finish="length", logprobs=False)
    np.testing.assert_array_equal(run(quads, load(server)).values, 1)


def test_a_system_prompt_and_fields_of_the_endpoint_are_sent(server, quads):
    server.set()
    given = {"system": "Look twice.", "extra": '{"reasoning_effort": "low", "top_k": 1}'}
    model = load(server, read="logprobs", **given)
    run(quads, model)
    asked = server.log()[0]["asked"]
    assert asked["messages"][0] == {"role": "system", "content": "Look twice."}
    assert (asked["reasoning_effort"], asked["top_k"]) == ("low", 1)
    assert model.identity.options["system"] == "Look twice."
    assert model.identity != load(server, read="logprobs").identity
    for extra in ("{", "[1]", '{"model": "other"}', '{"max_tokens": 3}'):
        refuses("no fields of a request", load, server, extra=extra, error=InputError)


def test_a_model_that_reads_text_alone_is_asked_without_images(server, quads):
    server.set()
    values = run(quads, load(server, read="logprobs", images="no")).values
    kinds = {part["type"] for entry in server.log() for part in entry["asked"]["messages"][0]["content"]}
    assert kinds == {"text"}
    np.testing.assert_allclose(values, 0.9)
    with pytest.raises(InputError, match="nothing to choose among"):
        run(quads, load(server, protocol="choose", images="no"))


def test_several_right_candidates_are_no_pick(server):
    choices = shown(forms.choices({"a": 3}, k=3, correct=2))
    refuses("several right candidates", run, choices, load(server, protocol="choose"), error=InputError)
    with pytest.raises(InputError, match="two-images asks about two images and two captions"):
        run(shown(forms.choices({"a": 3})), load(server, protocol="two-images"))


def test_questions_are_sent_as_they_are_and_the_first_answer_counts(server):
    quads = shown(forms.quads(3))
    texts = [f"Is it {number // 2}? Name A or B. {'AB'[number % 2]}" for number in range(len(quads.captions))]
    asked = tuple(replace(caption, text=text) for caption, text in zip(quads.captions, texts, strict=True))
    choices = shown(forms.choices({"a": 3}))
    choices = replace(choices, captions=asked)
    server.set(shows={digests(choices)[0]: ["Is it 0? Name A or B."], digests(choices)[2]: ["no question"]})
    assert run(choices, load(server, protocol="answer")).right["accuracy"].tolist() == [True, False, False]
    refuses("answer asks about one image", run, quads, load(server, protocol="answer"), error=InputError)
    words = tuple(replace(item, text=("red", "green")[n % 2]) for n, item in enumerate(asked))
    with pytest.raises(InputError, match=r"not one question with different answers; given: red \| green"):
        run(replace(choices, captions=words), load(server, protocol="answer"))


def test_crops_and_other_formats_are_sent_as_png(server, quads):
    cut = replace(quads, images=(replace(quads.images[0], crop=(0, 0, 1, 1)), *quads.images[1:]))
    server.set()
    first, second = (run(item, load(server)).values for item in (quads, cut))
    assert not np.array_equal(first[0], second[0])
    np.testing.assert_array_equal(first[1:], second[1:])
    assert math.isfinite(second.sum())


@pytest.mark.parametrize(
    ("spec", "settings", "message"),
    [
        ("http://localhost:1/v1", {}, "lacks its model"),
        ("localhost:1/v1#m", {}, "no address of an endpoint"),
        ("http://localhost:port/v1#m", {}, "no address of an endpoint"),
        ("http://user:secret@localhost/v1#m", {}, "would be written into results"),
        ("http://localhost/v1?key=secret#m", {}, "would be written into results"),
        ("http://localhost/v1#m", {"protocol": "chose"}, "key 'protocol': not a choice; given: chose"),
        ("http://localhost/v1#m", {"question": "what?"}, "question needs one {}"),
        ("http://localhost/v1#m", {"image_question": "{}?"}, "belongs to another protocol"),
        ("http://localhost/v1#m", {"rpm": "many"}, "key 'rpm': not a number; given: many"),
        ("http://localhost/v1#m", {"concurrency": "0"}, "key 'concurrency': out of range; given: 0"),
        ("http://localhost/v1#m", {"order": "seeded"}, "yes-no has no options to order"),
        ("http://localhost/v1#m", {"read": "text", "score": "p-yes"}, "a score belongs to log-prob"),
        ("http://localhost/v1#m", {"protocol": "choose", "read": "logprobs"}, "answers of choose are texts"),
        ("http://localhost/v1#m", {"speed": "9"}, "unknown key; given: speed"),
    ],
)
def test_bad_input_is_refused_before_anything_is_sent(spec, settings, message):
    words = refuses("", catalog.model, f"chat:{spec}", Options(settings=settings), error=InputError)
    assert message in words
    assert "secret" not in words


def _ask(server, *, key=KEY, timeout=60.0):
    settings = EndpointSettings(url=f"{server.address}/v1", model="m", retries=1, wait=0.01, timeout=timeout)
    words = refuses("", list, Endpoint(settings, key=key).ask([ChatRequest(("hello",), 5)]), error=ModelError)
    assert KEY not in words
    return words


@pytest.mark.parametrize("kind", ["endless", "bomb"])
def test_an_answer_without_end(kind, monkeypatch):
    assert http_client._MOST == 64 << 20
    monkeypatch.setattr(http_client, "_MOST", 1 << 20)
    with hostile(kind) as server:
        assert "the answer is too large; allowed: at most 1 MiB" in _ask(server)
        # It is not asked for again.
        assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["slow body", "slow headers", "silent"])
def test_an_answer_without_haste(kind):
    with hostile(kind) as server:
        start = time.monotonic()
        assert "no answer after 2 tries; given: ReadTimeout" in _ask(server, timeout=0.3)
        # Two tries of four time-outs at most; without the limit it would be 5,000 seconds.
        assert time.monotonic() - start < 600
        assert len(server.requests) == 2


def test_a_redirect_is_not_followed():
    with hostile(KEY) as other, hostile("redirect", to=f"{other.address}/v1/chat/completions") as server:
        assert "status 307" in _ask(server)
        assert other.requests == []
        assert f"Bearer {KEY}".encode() in server.requests[0]
    with hostile("redirect", to="/") as server:
        _ask(server, key=f"{KEY}\n")
        assert f"Bearer {KEY}\r\n".encode() in server.requests[0]


def test_a_key_is_nowhere_shown():
    settings = EndpointSettings(url="http://127.0.0.1:9/v1", model="m")
    for key in (f"{KEY}\n{KEY}", f"{KEY} {KEY}", f"{KEY}\u00e9", f"{KEY}\x00"):
        assert KEY not in refuses("not a key", Endpoint, settings, key=key, error=InputError)
    result = Endpoint(settings, key=KEY)
    assert KEY not in repr(vars(result)) + repr(secret(KEY, where="x")) + f"{[secret(KEY, where='x')]}"
