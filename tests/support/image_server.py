"""A server that speaks the protocol of image endpoints, with faults; run as a process of its own.

The picture that it makes of a prompt is of the colour that `colour` names, so that a test knows it.
"""

import base64
import hashlib
import io
from contextlib import contextmanager

import PIL.Image

import chat_server
from chat_server import STATE, Handler


def colour(prompt):
    """The colour of the picture of a prompt."""
    red, green, blue = hashlib.sha256(prompt.encode()).digest()[:3]
    return red, green, blue


def picture(prompt, side):
    """The picture of a prompt, as PNG."""
    buffer = io.BytesIO()
    PIL.Image.new("RGB", (side, side), colour(prompt)).save(buffer, format="PNG")
    return buffer.getvalue()


class ImageHandler(Handler):
    """Answers with base64, or with an address where the state's `always` is "url"."""

    faults = Handler.faults | {
        "not an image": (200, {"data": [{"b64_json": base64.b64encode(b"no image").decode()}]}),
        "no base64": (200, {"data": [{"b64_json": "?"}]}),
        "no data": (200, {"data": []}),
        "other scheme": (200, {"data": [{"url": "file:///etc/passwd"}]}),
    }

    def do_GET(self):
        if not self.path.startswith("/image/"):
            super().do_GET()
            return
        with STATE.lock:
            fault = STATE.babble.pop(0) if STATE.babble else ""
            STATE.log.append({"fetched": self.path, "key": self.headers.get("Authorization"), "answered": 0})
        if fault == "no image":
            self.send(200, "<html>no image</html>")
        elif fault:
            self.send(int(fault), {"error": {"message": "gone"}})
        else:
            prompt = bytes.fromhex(self.path.removeprefix("/image/")).decode()
            self.send(200, picture(prompt, 24))

    def _answer(self, asked):
        if asked["model"] != "painter":
            self.send(404, {"error": {"message": f"The model `{asked['model']}` does not exist"}})
        elif any(words in asked["prompt"] for words in STATE.refuse):
            error = {"message": "not allowed by our policy", "code": "content_policy_violation"}
            self.send(400, {"error": error})
        else:
            side = int(asked.get("size", "24x24").partition("x")[0])
            prompt = asked["prompt"] + (f" {asked['seed']}" if "seed" in asked else "")
            found = {"revised_prompt": f"{prompt}, revised"}
            if STATE.always == "url":
                found["url"] = f"http://{self.headers['Host']}/image/{prompt.encode().hex()}"
            else:
                found["b64_json"] = base64.b64encode(picture(prompt, side)).decode()
            self.send(200, {"created": 7, "data": [found], "usage": {"output_tokens": 5}})


@contextmanager
def running():
    """A server in a process of its own."""
    with chat_server.running(__file__) as found:
        yield found


def asked(server):
    """The requests for pictures, without those that fetched one."""
    return [entry for entry in server.log() if "body" in entry]


def fetched(server):
    """The requests that fetched a picture."""
    return [entry for entry in server.log() if "fetched" in entry]


if __name__ == "__main__":
    chat_server.serve(ImageHandler)
