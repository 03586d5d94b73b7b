"""A service in a process of its own, for what is too long or too large for every day."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import pytest


@pytest.fixture
def serving(tmp_path):
    """Return a context manager that runs `floodline serve`, and yields its process and address."""

    @contextmanager
    def serving(*flags, before=("-m", "floodline")):
        store = f"sqlite:///{tmp_path}/serve.db"
        words = [sys.executable, *before, "serve", "--store", store, "--port", "0"]
        words += ["--no-access-log", "--drain", "0", *flags]
        process = subprocess.Popen(words, stderr=subprocess.PIPE, cwd=tmp_path)
        try:
            line = process.stderr.readline().decode()
            while "http://" not in line:
                assert line, "it did not start"
                line = process.stderr.readline().decode()
            yield process, "http://" + line.partition("http://")[2].split(";")[0].split(",")[0]
            process.terminate()
            process.communicate(timeout=120)
        finally:
            process.kill()
            process.wait()

    return serving
