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
    """Return the path of an interpreter; raise if there is none."""
    found = shutil.which(python)
    if found is None:
        raise ConfigError(f"--python {python!r} was not found or cannot be run; give its path")
    return found


def program_words(python: str, words: list[str], *, module: bool) -> list[str]:
    """Return the command line of `app.py args…` or, with `module`, of `-m module args…`.

    `python -u app.py` is used as given, and so is a program that is not Python but starts it, such
    as a container's shell script: its Python children carry the probe.
    """
    if module:
        return [python, "-m", *words]
    interpreter = PYTHON.fullmatch(Path(words[0]).name)
    if interpreter and (found := shutil.which(words[0])):
        return [found, *words[1:]]
    if Path(words[0]).exists():
        file = Path(words[0])
        return [str(file.absolute()), *words[1:]] if _runs_by_itself(file) else [python, *words]
    found = None if interpreter else _command(python, words[0])
    if found is None:
        raise ConfigError(
            f"no program or file {words[0]!r} was found; give a Python file, -m and a module, "
            "or the path of an interpreter and its own options"
        )
    if not _is_python_script(found):
        raise ConfigError(
            f"{words[0]!r} is not a Python command; to run it anyway, give its path: {found}"
        )
    return [python, found, *words[1:]]


def _runs_by_itself(file: Path) -> bool:
    """Return True if it is a program that Python could not read."""
    if not file.is_file() or not os.access(file, os.X_OK):
        return False
    head = _head(file)
    return head.startswith(BINARY) or (head.startswith(b"#!") and b"python" not in head)


def _head(file: Path) -> bytes:
    """Return the first line of a script, the first bytes of anything else."""
    with file.open("rb") as opened:
        return opened.readline(512)


def _command(python: str, name: str) -> str | None:
    """Find a command installed with the interpreter, or else on the PATH."""
    return shutil.which(name, path=str(Path(python).parent)) or shutil.which(name)


def _is_python_script(file: str) -> bool:
    with Path(file).open("rb") as script:
        head = script.read(512)
    return head.startswith(b"#!") and b"python" in head
