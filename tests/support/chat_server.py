"""A server that speaks the protocol of chat endpoints, with faults; run as a process of its own.

It looks at the images and prompts that it is sent: what each image shows is put into it, and it answers by
that.
`POST /control` sets its state, `GET /log` gives all requests for answers.
"""

import base64
import hashlib
import json
import math
import re
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager

import loopback

KEY = "sk-a-secret-of-the-tests"


def probability(image, caption):
    """P(yes) of an image (its digest) and a caption, in (0, 1): the same in server and test."""
    return 0.05 + 0.9 * int(hashlib.sha256(f"{image} {caption}".encode()).hexdigest()[:8], 16) / 2**32


class State:
    """What the server answers, and what it was sent."""

    def __init__(self):
        self.lock, self.released = threading.Lock(), threading.Event()
        self.reset({})

    def reset(self, given):
        self.released.set()
        self.released = threading.Event()
        #: Digest of an image to the captions that it shows.
        self.shows = given.get("shows", {})
        self.logprobs = given.get("logprobs", True)
        #: What is answered to every prompt, in place of the truth.
        self.always = given.get("always")
        #: Why the model stopped.
        self.finish = given.get("finish", "stop")
        #: Parts of prompts that are refused, or answered with nothing that can be read.
        self.refuse = given.get("refuse", [])
        self.babble = given.get("babble", [])
        #: Faults of the first requests, one each.
        self.faults = given.get("faults", [])
        #: So many answers are given; later requests hang.
        self.most = given.get("most")
        self.log = []


STATE = State()


def _refusal(message, **more):
    return {"error": {"message": message, **more}}


class Handler(loopback.Handler):
    #: Status, body and headers of faults by name; a number is the status of another.
    faults = {  # noqa: RUF012
        "no json": (200, "<html>busy</html>"),
        "no choices": (200, {"choices": []}),
        "429": (429, _refusal("slow down"), {"Retry-After": "0.3"}),
        "quota": (429, _refusal("no money left", code="insufficient_quota")),
        "401": (401, _refusal(f"Incorrect API key provided: {KEY}")),
        "context": (500, _refusal("the request exceeds the available context size")),
        "filter": (400, _refusal("filtered", code="content_filter")),
    }

    def do_GET(self):
        with STATE.lock:
            self.send(200, STATE.log)

    def do_POST(self):
        body = self.body()
        if self.path == "/control":
            with STATE.lock:
                STATE.reset(json.loads(body))
            self.send(200, {})
            return
        entry = {
            "body": hashlib.sha256(body).hexdigest(),
            "time": time.time(),
            "key": self.headers.get("Authorization"),
            "path": self.path,
            "asked": json.loads(body) if self.headers["Content-Type"] == "application/json" else None,
            "answered": False,
        }
        with STATE.lock:
            STATE.log.append(entry)
            fault = STATE.faults.pop(0) if STATE.faults else ""
            held = STATE.most is not None and sum(item["answered"] for item in STATE.log) >= STATE.most
            entry["answered"] = not held and fault in ("", "late")
            released = STATE.released
        if held or fault == "silent":
            released.wait(60)
        elif fault in ("", "late"):
            time.sleep(0.2 if fault else 0)
            self._answer(self._parsed(body))
        else:
            self._fail(fault)

    def _parsed(self, body):
        return json.loads(body)

    def _fail(self, fault):
        if fault == "cut":
            self.cut()
        elif fault == "half":
            self.send_response(200)
            self.send_header("Content-Length", "5000")
            self.end_headers()
            self.wfile.write(b'{"choices": [')
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.send(*self.faults.get(fault) or (int(fault), _refusal(f"fault {fault}")))

    def _answer(self, asked):
        if asked["model"] != "looker":
            self.send(404, {"error": {"message": f"The model `{asked['model']}` does not exist"}})
            return
        content = asked["messages"][-1]["content"]
        text = "\n".join(part["text"] for part in content if part["type"] == "text")
        images = [_digest(part["image_url"]["url"]) for part in content if part["type"] == "image_url"]
        message = {"role": "assistant"}
        choice = {"index": 0, "finish_reason": STATE.finish, "message": message}
        if any(words in text for words in STATE.refuse):
            message |= {"content": None, "refusal": "I can't help with that."}
        elif any(words in text for words in STATE.babble):
            message["content"] = "It is hard to tell."
        else:
            message["content"] = STATE.always or answer(text, images, STATE.shows)
        if asked.get("logprobs") and STATE.logprobs:
            yes = probability(images[0], _quoted(text)) if images else 0.9
            tokens = [["Yes", 0.75 * yes], [" yes", 0.25 * yes], ["No", 0.95 * (1 - yes)]]
            if any(words in text for words in (*STATE.babble, *STATE.refuse)):
                tokens = [["It", 0.9], ["I", 0.05]]
            choice["logprobs"] = {
                "content": [
                    {
                        "token": tokens[0][0],
                        "logprob": math.log(tokens[0][1]),
                        "top_logprobs": [{"token": t, "logprob": math.log(p)} for t, p in tokens],
                    }
                ]
            }
        usage = {"prompt_tokens": 100, "completion_tokens": 2, "total_tokens": 102}
        self.send(200, {"model": "looker-2026", "choices": [choice], "usage": usage})


def answer(text, images, shows):
    """What one who sees the images answers to a prompt of any protocol."""
    captions = re.findall(r"^Caption ([AB]): (.*)$", text, re.MULTILINE)
    if captions:
        letters = [
            next(letter for letter, words in captions if words in shows.get(image, ())) for image in images
        ]
        return f"1{letters[0]} 2{letters[1]}"
    options = re.findall(r"^\(([A-Z])\) (.+)$", text, re.MULTILINE)
    if options:
        return next(
            (f"({letter}) {words}" for letter, words in options if words in shows.get(images[0], ())), "none"
        )
    if len(images) > 1:
        return "ABCDEFGH"[next(k for k, image in enumerate(images) if _quoted(text) in shows.get(image, ()))]
    if images and not _quoted(text):  # A question by itself.
        return "A, I think." if text in shows.get(images[0], ()) else "I would say B, or no."
    return "Yes." if not images or _quoted(text) in shows.get(images[0], ()) else "No, it does not."


def _quoted(text):
    return "".join(re.findall(r'"(.*)"', text)[:1])


def _digest(url):
    return hashlib.sha256(base64.b64decode(url.partition(",")[2])).hexdigest()


class Server:
    """A running server, from the side of a test."""

    def __init__(self, port):
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/v1"

    def set(self, **state):
        """Forget all requests, and answer as `state` says."""
        data = json.dumps(state).encode()
        with urllib.request.urlopen(urllib.request.Request(f"{self.root}/control", data), timeout=10):
            pass

    def log(self):
        with urllib.request.urlopen(f"{self.root}/log", timeout=10) as response:
            return json.load(response)


@contextmanager
def running(script=__file__, *arguments):
    """A server in a process of its own."""
    with subprocess.Popen([sys.executable, script, *arguments], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server(int(process.stdout.readline()))
        finally:
            process.kill()


def serve(handler):
    server = loopback.server_of(handler)
    sys.stdout.write(f"{server.server_address[1]}\n")
    sys.stdout.flush()
    server.serve_forever()


if __name__ == "__main__":
    serve(Handler)
