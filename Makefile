.DEFAULT_GOAL := help
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

# Pure code: whatever is not tested there was not thought through, so every line and branch is.
PURE := src/heliograph/wire/*,src/heliograph/signing/*,src/heliograph/queue/machine.py
PURE := $(PURE),src/heliograph/arkret/schema.py,src/heliograph/arkret/gateway/decide.py
PURE := $(PURE),src/heliograph/arkret/gateway/describe.py

.PHONY: help install demo test check format bench crash clauses docs lock

help: ## Print what can be made
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): requirements/dev.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

install: $(STAMP) ## Install the locked packages and Heliograph into .venv

demo: $(STAMP) ## Run the main job: a signed notify becomes a wakeup on a device
	$(BIN)/heliograph demo

test: $(STAMP) ## Pass the tests
	$(BIN)/python $(MEASURED) -m pytest

check: $(STAMP) ## Everything a commit must pass, quickest first
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy
	$(BIN)/deptry src
	$(MAKE) test MEASURED='-m coverage run'
	$(BIN)/coverage report --fail-under=100 --include='$(PURE)'
	$(BIN)/coverage report

format: $(STAMP) ## Put the code into its one format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(STAMP) ## Measure speed and size, with the raw limit in the same run
	$(BIN)/python -m bench

crash: $(STAMP) ## Kill serving and working processes at random instants (ROUNDS=200)
	$(BIN)/python -m tests.crash --rounds $(or $(ROUNDS),200)

clauses: $(STAMP) ## List every requirement with the tests that prove it, and those with none
	$(BIN)/python -m tests.clauses

docs: $(STAMP) ## Renew the pages that are generated from tables in the code
	$(BIN)/python -m tests.generated

lock: $(STAMP) ## Renew the hashed lock files from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra postgres --extra lab pyproject.toml -o requirements/run.txt
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --extra dev pyproject.toml -o requirements/dev.txt
