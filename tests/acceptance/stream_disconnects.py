"""200 clients stream answers from the FastAPI example under `floodline run`; half of them leave.

    python tests/acceptance/stream_disconnects.py --clients 200 --minutes 15

For `nox -s streams`. Ends with 0 if the server is called bounded, no session is left held, and
nothing that was acknowledged is missing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from streaming_clients import Stage


def say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=15.0, help="at most")
    chosen = parser.parse_args()
    end = time.monotonic() + 60 * chosen.minutes
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), chosen.clients)
        try:
            verdict = ""
            while time.monotonic() < end and verdict not in ("growing", "bounded"):
                stage.talk(turns=sys.maxsize, seconds=15)
                verdict = stage.verdict()
                asked = [len(one.asked) for one in stage.clients]
                say(f"{sum(asked)} answers, {min(asked)} to {max(asked)} a client: {verdict}")
            held = stage.left_held()
            said = stage.end()
        finally:
            stage.run.stop()
        say(said)
        lost = stage.lost()
    left = sum(not one.complete for client in stage.clients for one in client.asked)
    say(f"{left} answers were left in the middle; {held} sessions left held; {len(lost)} lost")
    for one in lost[:10]:
        say(one)
    return 0 if verdict == "bounded" and not held and not lost and left else 1


if __name__ == "__main__":
    sys.exit(main())
