# make demo   set up, run the main job on bundled data, print a table
# make test   set up, then everything CI checks: lint, types, tests
# make docs   build the documentation site in build/site; a warning is an error
# make torture  kills, malicious pickles and damaged files by the ten thousand; counts what survived and what was lost
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed

.PHONY: demo test lint lint-page types tests docs torture bench clean
.DEFAULT_GOAL := help

help:
	@sed -n 's/^# //p' Makefile

# The constraints pin what we test with. Installing torch by that pin first takes the CPU build where one is offered.
$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --constraint constraints.txt torch
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $(READY)

demo: $(READY)
	@PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

test: lint types tests

lint: $(READY) lint-page
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

# The scripts of the explorer's page; their unit tests run with the others, also where node is but npm is not.
lint-page:
	@if command -v npm >/dev/null && $(MAKE) --no-print-directory node_modules/.package-lock.json; then npm run --silent lint; \
	else echo "npm or its packages are not here, so the scripts of the page are not linted"; fi

node_modules/.package-lock.json: package-lock.json
	npm ci --silent --no-audit --no-fund

types: $(READY)
	$(BIN)/mypy

tests: $(READY)
	$(BIN)/pytest -n 2

docs: $(READY)
	$(BIN)/python tools/build_docs.py

# ARGS: --minutes 8, --seed 3, or kinds such as 'forged set'; see tests/attacks/__main__.py
torture: $(READY)
	$(BIN)/python -m tests.attacks $(ARGS)

bench: $(READY)
	@for file in benchmarks/bench_*.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

clean:
	rm -rf $(VENV) build dist node_modules .mypy_cache .pytest_cache .ruff_cache .hypothesis
