"""A headless Chromium that is driven over the DevTools pipe, with real clicks."""

import json
import os
import subprocess
import tempfile
import time

from tests.report.browser import CHROMIUM, SWITCHES

WITHOUT = ("--virtual-time-budget", "--enable-logging")


class Browser:
    """One page of a browser; use as a context."""

    def __init__(self, address, *, width=1100, height=760):
        self.address, self.size = address, (width, height)
        self._count, self._session, self._rest = 0, None, b""

    def __enter__(self):
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read_end, self._out = os.pipe()
        self._in, write_end = os.pipe()
        switches = [each for each in SWITCHES if not each.startswith(WITHOUT)]
        command = [CHROMIUM, *switches, "--remote-debugging-pipe", f"--user-data-dir={self._profile.name}"]
        command += [f"--window-size={self.size[0]},{self.size[1]}", "about:blank"]
        script = f'exec "$0" "$@" 3<&{read_end} 4>&{write_end}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, *command],
            pass_fds=(read_end, write_end),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_end)
        os.close(write_end)
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target["targetId"] for target in targets if target["type"] == "page")
        self._session = self.send("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        self.send("Page.enable")
        self.send("Page.navigate", url=self.address)
        return self

    def __exit__(self, *_):
        self._process.terminate()
        self._process.wait(30)
        os.close(self._in)
        os.close(self._out)
        self._profile.cleanup()

    def send(self, method, **params):
        """Call a method of the DevTools and return its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self._rest:
                part = os.read(self._in, 1 << 16)
                assert part, "the browser has gone"
                self._rest += part
            found, _, self._rest = self._rest.partition(b"\0")
            answer = json.loads(found)
            if answer.get("id") == self._count:
                assert "error" not in answer, answer
                return answer["result"]

    def value(self, expression):
        """The value of an expression in the page."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def wait(self, condition, *, seconds=60):
        """Wait until an expression is true."""
        end = time.monotonic() + seconds
        while not self.value(f"Boolean({condition})"):
            assert time.monotonic() < end, f"{condition} stays false; the page says {self.status}"
            time.sleep(0.02)

    @property
    def status(self):
        return self.value("document.getElementById('status')?.textContent")

    def click(self, selector):
        """Click the middle of the first element that a selector finds."""
        element = f"document.querySelector({json.dumps(selector)})"
        self.wait(element)
        x, y = self.value(
            f"(() => {{ const box = {element}.getBoundingClientRect();"
            " return [box.x + box.width / 2, box.y + box.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self):
        """The page as base64 PNG."""
        return self.send("Page.captureScreenshot", format="png")["data"]
