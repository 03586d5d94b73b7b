"""Takes docs/dashboard.png: the dashboard of the leaking chat after about a minute and a half.

python tests/dashboard_picture.py docs/dashboard.png
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from browser import chromium
from watched_chat import CULPRIT, watched_chat


def main(target: Path) -> None:
    with (
        tempfile.TemporaryDirectory() as folder,
        watched_chat(Path(folder) / "run.rec", "--line", "192 MiB", pause=0.002) as watched,
        chromium() as browser,
    ):
        browser.size(1180, 1060)
        browser.theme("light")
        browser.open(watched.url)
        browser.wait_for(CULPRIT, 120)
        time.sleep(60)  # for the curve to be one
        browser.wait_for("Growing")
        below = "return document.getElementById('sessions-title').getBoundingClientRect().top"
        browser.size(1180, int(browser.run(below)) - 44)
        browser.picture(target)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
