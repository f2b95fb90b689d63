"""A headless Chromium for tests, steered over its debugging pipe: the one that TRAINDX_CHROMIUM names, or of PATH."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

SWITCH = "TRAINDX_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome-headless-shell")
PROGRAM = os.environ.get(SWITCH) or next((p for n in NAMES if (p := shutil.which(n))), "")
needs_chromium = pytest.mark.skipif(not PROGRAM, reason=f"no Chromium: {SWITCH}=/path/to/chromium names one")
_ARGUMENTS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
              "--disable-background-networking", "--single-process", "--no-zygote", "--remote-debugging-pipe")


class Tab:
    """One page of a Chromium."""

    def __init__(self, program: str, profile: Path, width: int, height: int) -> None:
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()
        swap = f"exec 3<&{to_read} 4>&{to_write}; exec \"$0\" \"$@\""
        self._process = subprocess.Popen(
            ["bash", "-c", swap, program, *_ARGUMENTS, f"--user-data-dir={profile}", f"--window-size={width},{height}"],
            pass_fds=(to_read, to_write), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(profile)})
        os.close(to_read)
        os.close(to_write)
        self._count, self._rest, self._session = 0, b"", ""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def call(self, method: str, **given: Any) -> dict[str, Any]:
        """Calls the protocol and returns the result; events are passed over."""
        self._count += 1
        sent = {"id": self._count, "method": method, "params": given}
        if self._session:
            sent["sessionId"] = self._session
        os.write(self._write, json.dumps(sent).encode() + b"\0")
        while True:
            told = self._next()
            if told.get("id") == self._count:
                assert "error" not in told, (method, told["error"])
                return dict(told["result"])

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            more = os.read(self._read, 2**16)
            assert more, "Chromium ended"
            self._rest += more
        one, _, self._rest = self._rest.partition(b"\0")
        return dict(json.loads(one))

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression in the page."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in done, done
        return done["result"].get("value")

    def open(self, address: str) -> None:
        """Goes there and waits until it is loaded."""
        self.call("Page.navigate", url=address)
        self.until("document.readyState == 'complete' && location.href != 'about:blank'")

    def until(self, expression: str, seconds: float = 30.0) -> None:
        """Waits for a condition of the page."""
        end = time.monotonic() + seconds
        while not self.evaluate(expression):
            assert time.monotonic() < end, f"never true: {expression}; the page says {self.text()[:500]}"

    def text(self) -> str:
        """What the page shows."""
        return str(self.evaluate("document.body ? document.body.innerText : ''"))

    def dark(self) -> None:
        """As a person sees it who prefers dark pages."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark"}])

    def picture(self, out: Path) -> Path:
        """A PNG of the whole page."""
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=True)["data"]
        out.write_bytes(base64.b64decode(data))
        return out

    def close(self) -> None:
        """Ends the browser."""
        os.close(self._write)
        os.close(self._read)
        self._process.kill()
        self._process.wait()


@contextmanager
def tab(profile: Path, width: int = 1280, height: int = 900) -> Iterator[Tab]:
    """A page of a new browser."""
    made = Tab(PROGRAM, profile, width, height)
    try:
        yield made
    finally:
        made.close()
