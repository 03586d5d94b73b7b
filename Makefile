# The commands of the README. All work with git, make and python3 (3.11 or later) alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: test run bench docs clean

test: $(VENV)/.dev
	$(BIN)/python -m nox --no-error-on-missing-interpreters

run: $(VENV)/.web
	$(BIN)/python -m floodline run examples/agent_server.py $(ARGS)

bench: $(VENV)/.dev
	$(BIN)/python -m nox -s bench

docs: $(VENV)/.docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs build/site
	@echo "the site is in build/site/index.html"

$(VENV)/.dev: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[dev]'
	@touch $(VENV)/.dev $(VENV)/.docs $(VENV)/.web

$(VENV)/.docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[docs,redis,postgres]'
	@touch $@

$(VENV)/.web: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) --editable '.[web,prometheus]'
	@touch $@

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "floodline needs Python 3.11 or later; try: make PYTHON=python3.12 $(MAKECMDGOALS)" or 0)'
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) .nox .coverage .coverage.* build dist results
