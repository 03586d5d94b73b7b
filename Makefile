# The commands of the README. All work with git, make and python3 (3.11 or later) alone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
INSTALL = install --quiet --constraint constraints.txt --editable '.[$(EXTRAS)]'

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

$(VENV)/.dev: EXTRAS := dev
$(VENV)/.docs: EXTRAS := docs,redis,postgres
$(VENV)/.web: EXTRAS := web,prometheus

# uv takes seconds where pip takes a minute; where it does not work, pip does it all
$(VENV)/.dev $(VENV)/.docs $(VENV)/.web: pyproject.toml constraints.txt | $(VENV)/bin/python
	{ $(PIP) install uv && $(BIN)/python -m uv pip $(INSTALL); } || { $(PIP) uninstall --yes uv; $(PIP) $(INSTALL); }
	@touch $@ $(if $(filter dev,$(EXTRAS)),$(VENV)/.docs $(VENV)/.web)

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "floodline needs Python 3.11 or later; try: make PYTHON=python3.12 $(MAKECMDGOALS)" or 0)'
	$(PYTHON) -m venv $(VENV)

clean:
	rm -rf $(VENV) .nox .coverage .coverage.* build dist results
