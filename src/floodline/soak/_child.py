"""Runs a scenario in an interpreter that may have no floodline: `python _child.py REQUEST`.

Standard library only. The package is imported from where this file is, and nothing else there
gets on the path.
"""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

_floodline_engine = True  # the walk leaves this module out
INTERRUPTED = 130


def _take_package() -> None:
    home = Path(__file__).resolve().parents[1]
    spec = importlib.util.spec_from_file_location(
        "floodline", home / "__init__.py", submodule_search_locations=[str(home)]
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules["floodline"] = package
    spec.loader.exec_module(package)


def main(request: dict[str, Any]) -> int:
    """Run what the request asks for, write the record, and return the exit status."""

    def tell(done: int, total: int, phase: str) -> None:
        told.write(f"{done} {total} {phase}\n")
        told.flush()

    if request.get("progress") is None:
        return _run(request, None)
    with Path(request["progress"]).open("w", encoding="utf-8") as told:
        return _run(request, tell)


def _run(request: dict[str, Any], progress: Any) -> int:
    from floodline.errors import ConfigError
    from floodline.leaks._vocabulary import Outcome, Where
    from floodline.soak import Answer, Soak, load
    from floodline.soak._failure import failure_text

    try:
        scenario = load(Path(request["scenario"]), profile=request.get("profile"))
    except ConfigError as error:
        print(f"floodline: {error}", file=sys.stderr)  # noqa: T201  # a command's message
        return 2
    except (Exception, SystemExit) as error:  # the file may do anything on import
        answer = Answer(
            verdict=Outcome.UNDECIDED, where=Where.UNKNOWN, rounds=request["rounds"], warmup=0,
            why="the scenario could not be imported", errors=(failure_text(error),),
        )  # fmt: skip
    else:
        soak = Soak(
            scenario, rounds=request["rounds"], warmup=request.get("warmup"), progress=progress
        )
        try:
            answer = soak.run()
        except SystemExit as error:  # its status would be taken for ours
            answer = soak.failed(error)
    record = {"answer": answer.as_dict(), "text": answer.text(), "exit": answer.exit_code}
    Path(request["out"]).write_text(json.dumps(record), encoding="utf-8")
    return answer.exit_code


if __name__ == "__main__":  # pragma: no cover  # runs in the child that the command starts
    sys.path.pop(0)
    _take_package()
    try:
        sys.exit(main(json.loads(sys.argv.pop(1))))
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
