"""Requests made from the service's own OpenAPI document never find a defect."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHECKS = (
    "not_a_server_error,content_type_conformance,"
    "status_code_conformance,response_schema_conformance"
)

pytest.importorskip("schemathesis", reason="nox -s serve installs it")


def test_no_request_of_the_document_is_answered_with_500(serving):
    with serving("--max-items", "100") as (_process, url):
        words = [sys.executable, "-m", "schemathesis.cli", "run", f"{url}/openapi.json"]
        words += ["--checks", CHECKS, "--max-examples", "50"]
        words += ["--exclude-path", "/v1/floodline/events", "--phases", "examples,coverage,fuzzing"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
