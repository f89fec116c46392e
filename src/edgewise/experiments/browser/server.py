"""Serves the page of one game on the loopback interface, to the browser that has its address.

Every request must name this host, carry the token of the address, and, if it changes the game, come from the
page itself (`Origin`) with the version of the position that it shows. Requests are small and few; nothing is
read from the disk after the start.
"""

from __future__ import annotations

import hmac
import io
import json
import secrets
import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from edgewise.config import files
from edgewise.config.errors import ConfigError, EdgewiseError
from edgewise.experiments.browser.session import Session

HOST = "127.0.0.1"
ASSETS = Path(__file__).parent / "assets"
TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
}
LARGEST_BODY = 4096
"""Bytes of a request's body."""
TIMEOUT = 10.0
"""Seconds in which a request must be there, and an answer be taken, however slowly bytes come."""
CONNECTIONS = 16
"""Connections that are served at the same time."""
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class RefusedError(Exception):
    """A request that is not answered with a page: a status and the reason in words."""

    def __init__(self, status: HTTPStatus, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


class GameServer(ThreadingHTTPServer):
    """The server of one game.

    Args:
        session: the game.
        port: 0 for any free one.
        token: secret part of the address; a new random one if not given.

    Raises:
        ConfigError: the port cannot be used.
    """

    daemon_threads = True

    def __init__(self, session: Session, *, port: int = 0, token: str | None = None) -> None:
        self.session, self.token = session, token or secrets.token_urlsafe(16)
        self.turn = threading.Lock()
        self._free = threading.BoundedSemaphore(CONNECTIONS)
        self.unread: dict[socket.socket, None] = {}
        self.files = {path.name: files.read_bytes(path) for path in ASSETS.iterdir() if path.suffix in TYPES}
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            hint = "choose another --port, or 0 for any free one"
            raise ConfigError(f"--port {port}: {reason}", hint=hint) from None

    @property
    def origin(self) -> str:
        """Scheme, host and port."""
        return f"http://{HOST}:{self.server_address[1]}"

    @property
    def address(self) -> str:
        """The address of the page, with its token."""
        return f"{self.origin}/{self.token}/"

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread; if too many are open, the one that has sent longest gives way."""
        if not self._free.acquire(blocking=False):
            slowest = next(iter(list(self.unread)), None)
            if slowest is not None:
                with suppress(OSError):
                    slowest.shutdown(socket.SHUT_RDWR)
            if not self._free.acquire(timeout=1.0):
                self.shutdown_request(request)
                return
        self.unread[request] = None
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection, then let another one in."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.unread.pop(request, None)
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore connections that break off."""


class Handler(BaseHTTPRequestHandler):
    """Answers the requests of the page."""

    server: GameServer
    timeout = TIMEOUT
    server_version, sys_version = "edgewise", ""

    def setup(self) -> None:
        """Read the request with one deadline for all of it."""
        super().setup()
        self.rfile = io.BufferedReader(_Timed(self.connection, TIMEOUT))

    def do_GET(self) -> None:
        """Answer with the page, one of its files, the position, or the record of the game."""
        self._answer(self._get)

    def do_POST(self) -> None:
        """Change the game and answer with the new position."""
        self._answer(self._post)

    def _answer(self, find: Callable[[], tuple[bytes, str]]) -> None:
        try:
            self._check_sender()
            content, kind = find()
        except TimeoutError:
            self.close_connection = True
        except RefusedError as refused:
            self._send(refused.status, {"error": refused.reason})
        except EdgewiseError as error:
            self._send(HTTPStatus.BAD_REQUEST, {"error": str(error)})
        else:
            self._write(HTTPStatus.OK, content, kind)

    def _check_sender(self) -> None:
        """Refuse a request for another host, from another page, or without the token."""
        port = self.server.server_address[1]
        if self.headers.get("Host") not in (f"{HOST}:{port}", f"localhost:{port}"):
            raise RefusedError(HTTPStatus.FORBIDDEN, "this server answers to its own address alone")
        origin = self.headers.get("Origin")
        if origin is not None and origin not in (self.server.origin, f"http://localhost:{port}"):
            raise RefusedError(HTTPStatus.FORBIDDEN, f"requests from {origin[:80]!r} are not answered")
        token = self.path.partition("?")[0].split("/")[1]
        if not hmac.compare_digest(token.encode(), self.server.token.encode()):
            reason = "the token is missing or wrong: open the whole address that `edgewise play` shows"
            raise RefusedError(HTTPStatus.NOT_FOUND, reason)

    def _name(self) -> str:
        return "/".join(self.path.partition("?")[0].split("/")[2:])

    def _get(self) -> tuple[bytes, str]:
        name = self._name() or "page.html"
        with self.server.turn:
            if name == "position":
                return _json(self.server.session.view())
            if name == "game.txt":
                return self.server.session.record().encode(), "text/plain; charset=utf-8"
        if name in self.server.files:
            return self.server.files[name], TYPES[Path(name).suffix]
        raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no {name[:80]!r} here")

    def _post(self) -> tuple[bytes, str]:
        if self.headers.get("Origin") is None:
            raise RefusedError(HTTPStatus.FORBIDDEN, "moves are made on the page")
        asked, session = self._body(), self.server.session
        actions: dict[str, Callable[[], None]] = {
            "play": lambda: session.play(_text(asked, "move")),
            "think": session.think,
            "back": session.take_back,
            "new": session.new,
        }
        name = self._name()
        if name not in actions:
            raise RefusedError(HTTPStatus.NOT_FOUND, f"there is no {name[:80]!r} here")
        with self.server.turn:
            if asked.get("version") != session.version:
                reason = "the game has gone on in another tab: this one now shows the present position"
                raise RefusedError(HTTPStatus.CONFLICT, reason)
            actions[name]()
            return _json(session.view())

    def _body(self) -> dict[str, Any]:
        """Read the JSON object of a request."""
        length = self.headers.get("Content-Length", "")
        if not length.isascii() or not length.isdigit():
            raise RefusedError(HTTPStatus.LENGTH_REQUIRED, "a request needs a Content-Length")
        if len(length) > 9 or int(length) > LARGEST_BODY:
            reason = f"a request has at most {LARGEST_BODY} bytes, got {length[:20]}"
            raise RefusedError(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, reason)
        try:
            asked = files.parse_json(self.rfile.read(int(length)).decode())
        except ValueError:
            raise RefusedError(HTTPStatus.BAD_REQUEST, "the request is not JSON") from None
        self.server.unread.pop(self.connection, None)
        if not isinstance(asked, dict):
            raise RefusedError(HTTPStatus.BAD_REQUEST, "expected a JSON object")
        return asked

    def _send(self, status: HTTPStatus, data: dict[str, Any]) -> None:
        self._write(status, *_json(data))

    def _write(self, status: HTTPStatus, content: bytes, kind: str) -> None:
        self.server.unread.pop(self.connection, None)
        self.connection.settimeout(TIMEOUT)
        self.send_response(status)
        for name, value in {**HEADERS, "Content-Type": kind, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        if kind.startswith("text/plain"):
            self.send_header("Content-Disposition", "attachment")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: Any) -> None:
        """Keep the terminal quiet."""


class _Timed(io.RawIOBase):
    """What a socket sends until a deadline."""

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection, self._until = connection, time.monotonic() + seconds

    def readable(self) -> bool:
        """Return true."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is there; raises TimeoutError after the deadline."""
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError("the request took too long")
        self._connection.settimeout(left)
        return self._connection.recv_into(buffer)


def _json(data: dict[str, Any]) -> tuple[bytes, str]:
    return json.dumps(data).encode(), "application/json"


def _text(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str):
        raise RefusedError(HTTPStatus.BAD_REQUEST, f"{name}: expected a text, got {str(value)[:40]!r}")
    return value
