"""A server that speaks the protocol of image endpoints, with faults; run as a process of its own.

The picture that it makes of a prompt is of the colour that `colour` names, so that a test knows it.
"""

import base64
import email
import hashlib
import io
from contextlib import contextmanager

import PIL.Image

import chat_server
from chat_server import STATE, Handler


def colour(prompt):
    red, green, blue = hashlib.sha256(prompt.encode()).digest()[:3]
    return red, green, blue


def edited(prompt, source):
    """The prompt whose picture an edit gives: it depends on the bytes of the source."""
    return f"{prompt} of {hashlib.sha256(source).hexdigest()}"


def picture(prompt, side):
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
            self.send(200, picture(bytes.fromhex(self.path.removeprefix("/image/")).decode(), 24))

    def _parsed(self, body):
        """The fields of JSON or, of an edit, those of a form, with the image's bytes as `image`."""
        if not self.path.endswith("/images/edits"):
            return super()._parsed(body)
        kind = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n"
        result = {}
        for part in email.message_from_bytes(kind.encode() + body).get_payload():
            name = part.get_param("name", header="content-disposition")
            data = part.get_payload(decode=True)
            result[name] = (part.get_content_type(), data) if name == "image" else data.decode()
        return result

    def _answer(self, asked):
        if asked["model"] != "painter":
            self.send(404, {"error": {"message": f"The model `{asked['model']}` does not exist"}})
        elif any(words in asked["prompt"] for words in STATE.refuse):
            error = {"message": "not allowed by our policy", "code": "content_policy_violation"}
            self.send(400, {"error": error})
        else:
            side = int(asked.get("size", "24x24").partition("x")[0])
            prompt = asked["prompt"] + (f" {asked['seed']}" if "seed" in asked else "")
            if "image" in asked:
                kind, source = asked["image"]
                with PIL.Image.open(io.BytesIO(source)) as opened:
                    assert opened.get_format_mimetype() == kind
                prompt = edited(prompt, source)
            result = {"revised_prompt": f"{prompt}, revised"}
            if STATE.always == "url":
                result["url"] = f"http://{self.headers['Host']}/image/{prompt.encode().hex()}"
            else:
                result["b64_json"] = base64.b64encode(picture(prompt, side)).decode()
            self.send(200, {"created": 7, "data": [result], "usage": {"output_tokens": 5}})


@contextmanager
def running():
    with chat_server.running(__file__) as result:
        yield result


def asked(server):
    return [entry for entry in server.log() if "body" in entry]


def fetched(server):
    return [entry for entry in server.log() if "fetched" in entry]


if __name__ == "__main__":
    chat_server.serve(ImageHandler)
