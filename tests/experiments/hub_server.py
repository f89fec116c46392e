"""A stand-in for the Hugging Face hub: repositories in memory, and those requests that are used."""

import base64
import hashlib
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Hub:
    """Use as a context; `repositories` holds the files of each by path, `seen` the requests."""

    def __init__(self):
        self.repositories, self.seen, self.bytes_claimed = {}, [], {}

    def __enter__(self):
        hub = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *_):
                pass

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                self.reply(*hub.post(self.path, body))

            def do_GET(self):
                self.reply(*hub.get(self.path))

            do_HEAD = do_GET  # noqa: N815

            def reply(self, code, content, headers=()):
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                hub.seen.append((self.command, self.path, code))
                self.send_response(code)
                for name, value in dict(headers).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(data)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()

    def post(self, path, body):
        """Create a repository, say how files are to be sent, or take a commit."""
        if path == "/api/repos/create":
            given = json.loads(body)
            name = "/".join(filter(None, (given.get("organization"), given["name"])))
            self.repositories.setdefault(name, {})
            return 200, {"url": f"{self.address}/{name}", "name": name}
        if path == "/api/validate-yaml":
            return 200, {"errors": [], "warnings": []}
        assert "preupload" in path or "commit" in path, path
        name, verb = re.match(r"/api/models/([^/]+/[^/]+)/(preupload|commit)/", path).groups()
        if verb == "preupload":
            files = json.loads(body)["files"]
            return 200, {
                "files": [
                    {"path": each["path"], "uploadMode": "regular", "shouldIgnore": False} for each in files
                ]
            }
        for line in map(json.loads, body.splitlines()):
            if line["key"] == "file":
                content = base64.b64decode(line["value"]["content"])
                self.repositories[name][line["value"]["path"]] = content
        return 200, {"commitUrl": f"{self.address}/{name}/commit/{self.revision}", "commitOid": self.revision}

    revision = "a" * 40

    def get(self, path):
        """Describe a repository, list its files, or return one."""
        path = path.partition("?")[0]
        if found := re.match(r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/[^/]+)?$", path):
            name, what = found.groups()
            if name not in self.repositories:
                return 404, {"error": "Repository not found"}, {"X-Error-Code": "RepoNotFound"}
            files = self.repositories[name]
            if what == "tree":
                return 200, [
                    {"type": "file", "path": each, "size": len(data), "oid": hashlib.sha1(data).hexdigest()}
                    for each, data in files.items()
                ]
            siblings = [
                {"rfilename": each, "size": self.bytes_claimed.get(each, len(data))}
                for each, data in files.items()
            ]
            return 200, {"id": name, "modelId": name, "sha": self.revision, "siblings": siblings, "tags": []}
        if found := re.match(r"/([^/]+/[^/]+)/resolve/[^/]+/(.+)$", path):
            data = self.repositories[found[1]][found[2]]
            return 200, data, {"ETag": f'"{hashlib.sha1(data).hexdigest()}"', "X-Repo-Commit": self.revision}
        return 404, {"error": path}
