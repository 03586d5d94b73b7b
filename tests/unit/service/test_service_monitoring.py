"""The board and the alerts in `docs/` ask for metrics that exist, and for all of them."""

from __future__ import annotations

import json
import re

import pytest

import service_monitoring as monitoring
from floodline._service._app import make_board
from floodline._service._metrics import FAMILIES
from floodline._service._tenants import Tenants

NAME = re.compile(r"floodline_serve_\w+")


def scraped():
    """Return the names of all series in a scrape."""
    board = make_board(Tenants())
    board.answered("items", 200, 0.1)
    lines = board.text().splitlines()
    return {NAME.match(line)[0] for line in lines if line.startswith("floodline")}


def test_the_files_are_what_is_made_from_the_names():
    assert json.loads(monitoring.BOARD.read_text(encoding="utf-8")) == monitoring.board()
    assert monitoring.ALERTS.read_text(encoding="utf-8") == monitoring.alerts()


def test_every_expression_asks_for_series_that_are_scraped():
    expressions = [
        target["expr"] for panel in monitoring.board()["panels"] for target in panel["targets"]
    ] + [rule[1] for rule in monitoring.RULES]
    asked = {found for expression in expressions for found in NAME.findall(expression)}
    assert asked <= scraped()
    assert all(expression.count("(") == expression.count(")") for expression in expressions)


def test_every_metric_is_on_the_board():
    text = json.dumps(monitoring.board())
    assert [family.name for family in FAMILIES if family.full_name not in text] == []


def test_a_name_that_does_not_exist_cannot_be_used():
    with pytest.raises(KeyError):
        monitoring.name("requests")
