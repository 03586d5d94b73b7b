"""The command line and the environment that a program is started with."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from floodline.errors import ConfigError
from floodline.recorder._probe_site import SITE, VARIABLE

PYTHON = re.compile(r"python(3(\.\d+)?)?t?")
BINARY = (b"\x7fELF", b"\xcf\xfa\xed\xfe", b"\xca\xfe\xba\xbe")


def watched_environment(address: str, environ: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return the environment that lets the probe into a Python and into all its children."""
    result = dict(os.environ if environ is None else environ)
    before = [one for one in result.get("PYTHONPATH", "").split(os.pathsep) if one]
    result["PYTHONPATH"] = os.pathsep.join([SITE, *(one for one in before if one != SITE)])
    result[VARIABLE] = address
    return result


def find_interpreter(python: str) -> str:
    """Return the path of an interpreter, or say that there is none."""
    found = shutil.which(python)
    if found is None:
        raise ConfigError(f"--python {python!r} is no program that can be run; give its path")
    return found


def program_words(python: str, words: list[str], *, module: bool) -> list[str]:
    """Return the command line of `app.py args…` or, with `module`, of `-m module args…`.

    `python -u app.py` is taken as it is, and so is a program that is not Python but starts it, such
    as the shell script of a container: its Python children carry the probe.
    """
    if module:
        return [python, "-m", *words]
    if PYTHON.fullmatch(Path(words[0]).name) and (found := shutil.which(words[0])):
        return [found, *words[1:]]
    if Path(words[0]).exists():
        file = Path(words[0])
        return [str(file.absolute()), *words[1:]] if _runs_by_itself(file) else [python, *words]
    script = _console_script(python, words[0])
    if script is None:
        raise ConfigError(
            f"{words[0]!r} is no file; give a Python file, or -m and a module, or python and its "
            "own options"
        )
    return [python, script, *words[1:]]


def _runs_by_itself(file: Path) -> bool:
    """Tell whether it is a program that Python could not read."""
    if not file.is_file() or not os.access(file, os.X_OK):
        return False
    head = _head(file)
    return head.startswith(BINARY) or (head.startswith(b"#!") and b"python" not in head)


def _head(file: Path) -> bytes:
    """Return the first line of a script, the first bytes of anything else."""
    with file.open("rb") as opened:
        return opened.readline(512)


def _console_script(python: str, name: str) -> str | None:
    """Find a command that pip has installed beside the interpreter, or else on the PATH."""
    found = shutil.which(name, path=str(Path(python).parent)) or shutil.which(name)
    if found is None:
        return None
    with Path(found).open("rb") as script:
        head = script.read(512)
    return found if head.startswith(b"#!") and b"python" in head else None
