"""A server that speaks the routes of the hub by which data sets are made and committed; a process of its own.

What is committed lies in a folder, OWNER/NAME below it. Files ending in .parquet go through the store for
large files, as on the hub. `POST /control` names the fault of the next requests to a route.
"""

import base64
import hashlib
import json
import sys
from pathlib import Path

import chat_server

TOKEN = "hf_a_secret_of_the_tests"
FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else Path()
FAULTS = {}
LARGE = {}


class Handler(chat_server.Handler):
    def do_POST(self):
        body = self.body()
        path = self.path.partition("?")[0]
        if path == "/control":
            FAULTS.clear()
            FAULTS.update(json.loads(body))
            return self._give({})
        route = next(
            name
            for name, part in (
                ("create", "/repos/create"),
                ("preupload", "/preupload/"),
                ("commit", "/commit/"),
                ("large", "/objects/batch"),
                ("yaml", "/validate-yaml"),
            )
            if part in path
        )
        fault = FAULTS.get(route, [])
        what = fault.pop(0) if fault else ""
        if self._failed(what):
            return None
        if route != "large" and self.headers.get("Authorization") != f"Bearer {TOKEN}":
            return self._give({"error": "Invalid username or password."}, 401)
        if route == "yaml":
            return self._give({"errors": [], "warnings": []})
        if route == "create":
            asked = json.loads(body)
            name = f"{asked['organization']}/{asked['name']}"
            if (FOLDER / name).exists():
                found = {"error": "You already created it", "url": f"{self._root()}/datasets/{name}"}
                return self._give(found, 409)
            (FOLDER / name).mkdir(parents=True)
            return self._give({"url": f"{self._root()}/datasets/{name}", "name": name})
        if route == "large":
            wanted = json.loads(body)["objects"]
            found = [
                {**each, "actions": {"upload": {"href": f"{self._root()}/large/{each['oid']}"}}}
                for each in wanted
            ]
            return self._give({"transfer": "basic", "objects": found}, kind="application/vnd.git-lfs+json")
        name = "/".join(path.split("/")[3:5])
        if route == "preupload":
            files = json.loads(body)["files"]
            modes = ["lfs" if each["path"].endswith(".parquet") else "regular" for each in files]
            found = [
                {"path": each["path"], "uploadMode": mode, "shouldIgnore": False}
                for each, mode in zip(files, modes, strict=True)
            ]
            return self._give({"files": found})
        return self._commit(name, [json.loads(line) for line in body.splitlines()])

    def _commit(self, name, lines):
        for line in lines:
            value, path = line["value"], FOLDER / name / line["value"].get("path", "")
            if line["key"] == "deletedFile":
                path.unlink()
            elif line["key"] in ("file", "lfsFile"):
                path.parent.mkdir(parents=True, exist_ok=True)
                large = line["key"] == "lfsFile"
                path.write_bytes(LARGE[value["oid"]] if large else base64.b64decode(value["content"]))
        oid = hashlib.sha1(json.dumps(lines).encode()).hexdigest()
        self._give(
            {"success": True, "commitOid": oid, "commitUrl": f"{self._root()}/datasets/{name}/commit/{oid}"}
        )

    def do_PUT(self):
        data = self.body()
        oid = self.path.rpartition("/")[2]
        if hashlib.sha256(data).hexdigest() != oid:
            return self._give({"error": "not these bytes"}, 400)
        LARGE[oid] = data
        return self._give({})

    def do_GET(self):
        """The files of a repository."""
        name = "/".join(self.path.split("/")[3:5])
        files = [path for path in sorted((FOLDER / name).rglob("*")) if path.is_file()]
        paths = [path.relative_to(FOLDER / name).as_posix() for path in files]
        if "/tree/" in self.path:
            self._give([{"type": "file", "path": path, "size": 1, "oid": "0" * 40} for path in paths])
        else:
            self._give({"id": name, "sha": "0" * 40, "siblings": [{"rfilename": path} for path in paths]})

    def _root(self):
        return f"http://{self.headers['Host']}"

    def _give(self, value, status=200, *, kind="application/json"):
        self.send(status, value, {"Content-Type": kind})


def running(folder):
    """A server in a process of its own, which keeps what is committed in `folder`."""
    return chat_server.running(__file__, str(folder))


if __name__ == "__main__":
    chat_server.serve(Handler)
