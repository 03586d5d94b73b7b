"""Headless Chromium, driven by its own driver over HTTP: no package is needed for it."""

from __future__ import annotations

import base64
import contextlib
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FLAGS = [
    "--headless",
    "--no-sandbox",  # tests may run as root, in a container
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--force-device-scale-factor=1",
]
PATIENCE = 200.0  # a safety net: a browser starts slowly beside other tests


def missing() -> str:
    """Say what is not installed, or nothing."""
    names = [name for name in ("chromium", "chromedriver") if not shutil.which(name)]
    return f"{' and '.join(names)} is not installed (apt-get install chromium chromium-driver)" * (
        bool(names)
    )


class NoBrowser(Exception):
    """Chromium is installed, but cannot be started on this machine."""


class Browser:
    """One session of the driver."""

    def __init__(self, driver: str, profile: str) -> None:
        options = {
            "binary": shutil.which("chromium"),
            "args": [*FLAGS, f"--user-data-dir={profile}"],
        }
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}
        try:
            made = ask(f"{driver}/session", {"capabilities": {"alwaysMatch": wanted}})
        except AssertionError as error:
            raise NoBrowser(str(error)) from None
        self.base = f"{driver}/session/{made['sessionId']}"

    def open(self, url: str) -> None:
        """Leave the last page, whose server may have gone, with all its complaints; open this."""
        ask(f"{self.base}/url", {"url": "about:blank"})
        self.complaints()
        ask(f"{self.base}/url", {"url": url})

    def run(self, script: str, *arguments: object) -> Any:
        return ask(f"{self.base}/execute/sync", {"script": script, "args": list(arguments)})

    def text(self) -> str:
        return str(self.run("return document.body.innerText"))

    def wait_for(self, text: str, patience: float = PATIENCE) -> float:
        """Wait until the page shows a text, and say how long that took."""
        began = time.monotonic()
        while text not in self.text():
            if time.monotonic() - began > patience:
                raise AssertionError(f"{text!r} is not on the page:\n{self.text()}")
            time.sleep(0.2)
        return time.monotonic() - began

    def complaints(self) -> list[str]:
        """What the browser wrote to its console: errors, and breaches of the content policy."""
        entries = ask(f"{self.base}/se/log", {"type": "browser"})
        return [entry["message"] for entry in entries if entry["level"] != "DEBUG"]

    def command(self, name: str, **parameters: object) -> Any:
        """One command of the developer tools."""
        return ask(f"{self.base}/goog/cdp/execute", {"cmd": name, "params": parameters})

    def size(self, width: int, height: int) -> None:
        self.command(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 600,
        )  # fmt: skip

    def theme(self, name: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.command("Emulation.setEmulatedMedia", features=features)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        shot = self.command("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def quit(self) -> None:
        request = urllib.request.Request(self.base, method="DELETE")
        urllib.request.urlopen(request, timeout=PATIENCE).close()


def ask(url: str, body: dict[str, Any]) -> Any:
    request = urllib.request.Request(
        url, json.dumps(body).encode(), {"content-type": "application/json"}
    )
    try:
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.load(answer)["value"]
    except urllib.error.HTTPError as error:
        with error:
            raise AssertionError(json.load(error)["value"]["message"]) from None


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    """Start a driver and a browser with an empty profile, and end both."""
    with (
        tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as profile,
        subprocess.Popen(
            ["chromedriver", "--port=0"],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as driver,
    ):
        try:
            assert driver.stdout is not None
            line = next(line for line in driver.stdout if "started successfully on port" in line)
            port = line.rstrip().rstrip(".").rpartition(" ")[2]
            browser = Browser(f"http://127.0.0.1:{port}", profile)
            try:
                yield browser
            finally:
                browser.quit()
        finally:
            driver.terminate()
