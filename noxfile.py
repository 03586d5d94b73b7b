"""The stages of the build. `nox` alone runs what `make test` runs; `nox -l` lists the rest.

Stages without a Python of their own run in the environment that runs nox (`.venv`, extra `dev`).
"""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
from pathlib import Path

import nox
from nox.command import CommandFailed

PYTHONS = ["3.11", "3.12", "3.13"]
HERE = f"{sys.version_info.major}.{sys.version_info.minor}"
MEASURE = (sys.executable, "-m", "coverage", "run", "-m")
PLAIN = (sys.executable, "-m")
# four on two cores: many tests wait for processes and servers
PYTEST = ("pytest", "-n", "4", "--dist", "worksteal", "-m", "not long", "--durations=40")
OTHERS = [f"brief-{python}" for python in PYTHONS if python != HERE]

nox.options.sessions = ["lint", "types", "imports", "suites", "frameworks", "coverage", *OTHERS]
nox.options.reuse_existing_virtualenvs = True
nox.options.default_venv_backend = "uv|virtualenv"  # uv takes seconds, pip minutes
nox.options.download_python = "never"


def _show_all_pyenv_versions() -> None:
    """The shims of pyenv answer only for the selected versions, so select all that we test."""
    if os.environ.get("PYENV_VERSION") or not shutil.which("pyenv"):
        return
    listed = subprocess.run(
        ["pyenv", "versions", "--bare"], capture_output=True, text=True, check=False
    )
    ours = [v for v in listed.stdout.split() if v.rpartition(".")[0] in PYTHONS]
    ours.sort(key=lambda version: not version.startswith(f"{HERE}."))
    if ours:
        os.environ["PYENV_VERSION"] = ":".join(ours)


def _pytest(session: nox.Session, *command: str, env: dict[str, str] | None = None) -> None:
    """Run pytest, and repeat its closing line when nox has said its own last words."""
    color = "--color=yes" if sys.stdout.isatty() else "--color=no"
    full = [*command, color, *session.posargs]
    session.log(" ".join(full))
    last = ""
    with subprocess.Popen(
        full, env={**os.environ, **(env or {})}, stdout=subprocess.PIPE, text=True, bufsize=1
    ) as run:
        for line in run.stdout or ():
            sys.stdout.write(line)
            sys.stdout.flush()
            last = line.rstrip() or last
    atexit.register(print, f"Python {session.python or HERE}\n{last}", flush=True)
    if run.returncode:
        session.error(f"pytest ended with status {run.returncode}")


def _accept(session: nox.Session, *python: str) -> None:
    report = Path(session.create_tmp()) / "robot"
    session.run(*python, "behave", "--format=progress", "tests/acceptance/features", external=True)
    session.run(
        *(*python, "robot", "--console=dotted", f"--outputdir={report}"),
        *("--pythonpath=tests/acceptance", "tests/acceptance/robot"),
        external=True,
    )


def _install(session: nox.Session, *wanted: str) -> str:
    """Install what a stage needs, in the versions that we test with; return its Python."""
    session.install("--quiet", "--constraint", "constraints.txt", *wanted)
    return str(Path(session.bin) / "python")


def _measured() -> Path:
    """Where `frameworks` leaves its figures for `coverage`; `suites` erases those of its own."""
    return Path(".nox/measured-frameworks").absolute()


_show_all_pyenv_versions()


@nox.session(venv_backend="none")
def lint(session: nox.Session) -> None:
    session.run(*PLAIN, "ruff", "check", external=True)
    session.run(*PLAIN, "ruff", "format", "--check", external=True)
    session.run(*PLAIN, "floodline", "scan", "src", external=True)


@nox.session(venv_backend="none")
def types(session: nox.Session) -> None:
    session.run(*PLAIN, "mypy", external=True)


@nox.session(venv_backend="none")
def imports(session: nox.Session) -> None:
    session.run(str(Path(sys.executable).with_name("lint-imports")), external=True)


@nox.session(venv_backend="none")
def suites(session: nox.Session) -> None:
    """All suites; `coverage` makes one figure of what they and `frameworks` measure."""
    session.run(*PLAIN, "coverage", "erase", external=True)
    _pytest(session, *MEASURE, *PYTEST)
    # in processes of their own: beside what frameworks import, every walk of a heap takes longer
    _pytest(session, *MEASURE, *PYTEST, "tests/frameworks")
    _accept(session, *MEASURE)


@nox.session(venv_backend="none")
def coverage(session: nox.Session) -> None:
    """One figure for all suites; processes that they start are measured too."""
    measured = [str(folder) for folder in (Path(), _measured()) if any(folder.glob(".coverage.*"))]
    session.run(*PLAIN, "coverage", "combine", "--quiet", *measured, external=True)
    session.run(*PLAIN, "coverage", "report", external=True)


@nox.session
def frameworks(session: nox.Session) -> None:
    """The adapters of the frameworks that `dev` leaves out; `coverage` adds what this measures."""
    python = _install(session, "--editable", ".[test,frameworks]")
    shutil.rmtree(_measured(), ignore_errors=True)
    _measured().mkdir(parents=True)
    adapters = sorted(Path("src/floodline/adapters").rglob("*.py"))
    mypy = (*PLAIN, "mypy", "--python-executable", python, *map(str, adapters))
    pages = ("tests/test_docs.py", "-k", "frameworks or docs/adapters or mcp-server")
    command = (python, *MEASURE[1:], *PYTEST, "tests/frameworks/adapters", *pages)
    with subprocess.Popen(mypy) as types:  # takes one core, and the tests leave some of it
        _pytest(session, *command, env={"COVERAGE_FILE": str(_measured() / ".coverage")})
    if types.returncode:
        session.error(f"mypy ended with status {types.returncode}")


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    _pytest(session, _install(session, "--editable", ".[test]"), "-m", *PYTEST)


@nox.session(python=PYTHONS)
def brief(session: nox.Session) -> None:
    """The promises on another Python, without the long random walks: for `make test`."""
    python = _install(session, "--editable", ".[test]")
    suites = ("tests/contract", "tests/unit/bounded", "tests/unit/sessions", "tests/unit/leaks")
    here = ("-k", "not Redis and not Postgres")  # servers are the same for every Python
    _pytest(session, python, "-m", *PYTEST, *here, *suites)


@nox.session(venv_backend="none")
def acceptance(session: nox.Session) -> None:
    _accept(session, *PLAIN)


@nox.session(venv_backend="none")
def kill(session: nox.Session) -> None:
    """Hundreds of `kill -9` at random moments, and whatever else is too long for every day."""
    _pytest(session, *PLAIN, "pytest", "-m", "long", "--timeout=1800")


@nox.session(venv_backend="none")
def attack(session: nox.Session) -> None:
    """The attacks of `tests/attack` at full length; `make test` runs the short ones."""
    command = (*PLAIN, "pytest", "-m", "long or not long", "tests/attack", "--timeout=3600")
    _pytest(session, *command, env={"ATTACK_EVERYWHERE": "1"})


@nox.session
def serve(session: nox.Session) -> None:
    """`floodline serve` against schemathesis, Node and hostile clients, and its memory for long."""
    python = _install(session, "--editable", ".[test]")
    session.install("--quiet", "schemathesis")
    _pytest(session, python, "-m", "pytest", "tests/serve", "--timeout=3600")
    memory = ("--only", "floodline", "--memory", "--seconds", "600")
    session.run(python, "benchmarks/bench_serve.py", *memory)


@nox.session(venv_backend="none")
def enter(session: nox.Session) -> None:
    """500 injections each into busy programs, with and without threads, on every Python found."""
    command = (*PLAIN, "pytest", "-m", "long or not long", "--timeout=3600")
    _pytest(session, *command, "tests/attack/test_entering.py")


@nox.session(venv_backend="none")
def systems(session: nox.Session) -> None:
    """The five systems of `examples/`, one by one: soaked, run, and their claims executed."""
    command = (*PLAIN, "pytest", "-m", "long or not long", "--timeout=3600")
    _pytest(session, *command, "tests/unit/test_five_systems.py")


@nox.session(venv_backend="none")
def watch(session: nox.Session) -> None:
    """Ten minutes under `floodline run` from a cold start: bounded sessions never grow."""
    session.run(*PLAIN[:1], "tests/acceptance/watch_bounded.py", *session.posargs, external=True)


@nox.session(venv_backend="none")
def streams(session: nox.Session) -> None:
    """200 clients of the FastAPI example under `floodline run`; half leave in the middle."""
    script = "tests/acceptance/stream_disconnects.py"
    session.run(*PLAIN[:1], script, *session.posargs, external=True)


@nox.session
@nox.parametrize("version", ["<0.118", ">=0.118"], ids=["before-0.118", "newest"])
def fastapi(session: nox.Session, version: str) -> None:
    """Before 0.118, FastAPI ends dependencies with `yield` before the body is sent."""
    tools = ("httpx", "hypothesis", "pytest", "pytest-timeout")
    session.install("--quiet", "--editable", ".[web]", f"fastapi{version}", *tools)
    python = str(Path(session.bin) / "python")
    _pytest(session, python, "-m", "pytest", "tests/frameworks/test_asgi.py")


def _sdist(session: nox.Session, package: str) -> Path:
    """Return the unpacked source of the version that is installed."""
    found = f"import importlib.metadata; print(importlib.metadata.version({package!r}))"
    version = str(session.run("python", "-c", found, silent=True)).strip()
    folder = Path(session.create_tmp()).resolve()
    fetch = ("pip", "download", "--quiet", "--no-deps", "--no-binary", package, "-d", str(folder))
    session.run("python", "-m", *fetch, f"{package}=={version}", silent=True)
    stem = f"{package.replace('-', '_')}-{version}"
    shutil.unpack_archive(folder / f"{stem}.tar.gz", folder, filter="data")
    return folder / stem


@nox.session
@nox.parametrize("package", ["aiogram", "openai-agents"])
def upstream(session: nox.Session, package: str) -> None:
    """The frameworks' own tests of their stores, from their sdists, with our adapters in them."""
    tools = ("pip", "pytest", "pytest-asyncio", "redis")
    python = _install(session, "--editable", f".[{package}]", *tools)
    ours = Path("tests/frameworks/upstream").resolve()
    source = _sdist(session, package)
    if package == "aiogram":
        # without its conftest, which starts bots and servers
        folder = source.with_name("aiogram")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
        (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        shutil.copy(ours / "aiogram_conftest.py", folder / "conftest.py")
        for name in ("test_storages.py", "test_isolation.py"):
            shutil.copy(source / "tests/test_fsm/storage" / name, folder)
        chosen = ("-k", "TestStorages or TestIsolations")
    else:
        folder = source
        names = ("test_session.py", "test_session_limit.py")
        chosen = ("-p", "openai_agents_plugin", *(f"tests/memory/{name}" for name in names))
    with session.chdir(folder):
        command = (python, "-m", "pytest", "-o", "asyncio_mode=auto", "-ra", *chosen)
        _pytest(session, *command, env={"PYTHONPATH": str(ours)})


@nox.session
def livebench(session: nox.Session) -> None:
    """Small programs on several frameworks under `floodline run`: is what it says of them true?"""
    wanted = ("flask", "tornado", "bottle", "cachetools", "starlette", "sqlalchemy")
    _install(session, "--editable", ".", *wanted)
    session.run("python", "benchmarks/livebench/run.py", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Each benchmark once, quickly: to see that it runs, and roughly where it stands."""
    _install(session, "--editable", ".[bench]")
    missed = []
    for script in sorted(Path("benchmarks").glob("bench_*.py")):
        quick = ["--quick"] if "--quick" in script.read_text(encoding="utf-8") else []
        try:
            session.run("python", str(script), *quick, *session.posargs)
        except CommandFailed:  # the others shall run all the same
            missed.append(script.name)
    # asv writes the name of the machine there
    home = {"HOME": str(Path(session.create_tmp()).resolve())}
    with session.chdir("benchmarks"):
        session.run("asv", "machine", "--yes", silent=True, env=home)
        session.run("asv", "check", "--python=same", env=home)
        session.run("asv", "run", "--quick", "--show-stderr", "--python=same", env=home)
    if missed:
        session.error(f"targets were missed in {', '.join(missed)}")
