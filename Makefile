# Every target works from a clean clone: the virtual environment is made on first use.
VENV ?= .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
BASE_PYTHON ?= $(shell command -v python3.11 || command -v python3)
# One test process for every core; TESTS narrows `make test` to a file or a test.
WORKERS ?= auto
TESTS ?= tests
# Cases for each operation of the API; 700 make over 20,000 of them.
CONTRACT_EXAMPLES ?= 700
# Random sequences of events for each configuration of observational memory.
OBSERVATION_EXAMPLES ?= 50
# Random sequences of writes at once for each isolation level; 34 of 100 steps make 10,000 steps.
MEMORY_EXAMPLES ?= 34
# Tests of killed workers mostly wait, so that several can run at once.
FAULT_WORKERS ?= 3
# COVERAGE=1 measures coverage with all tests and fails below the floor in pyproject.toml.
ifdef COVERAGE
COVERAGE_OPTIONS := --cov --cov-report=term
endif
# What must also work with `MASTRA_MEMORY = {}`, where every optional feature is off.
BARE_TESTS := tests/api tests/recall tests/observational tests/models tests/memory
BROWSER_MODULES := tests/browser/node_modules

.DEFAULT_GOAL := help
.PHONY: help run test faults lint conformance bench bench-recall bench-context observation-peer observation-plot browser screenshots clean

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: $(INSTALLED) ## Run everything on http://127.0.0.1:8000 (PORT=... for another port)
	@MASTRA_MEMORY_OBSERVE_FROM=$${MASTRA_MEMORY_OBSERVE_FROM-300} exec $(PYTHON) manage.py serve

test: $(INSTALLED) ## Run the tests in a database of their own (TESTS=path for some, COVERAGE=1)
ifneq ($(TESTS),tests)
	$(PYTHON) -m pytest -n $(WORKERS) --durations=10 $(TESTS)
else
	$(PYTHON) -m pytest -n $(WORKERS) --durations=10 $(COVERAGE_OPTIONS)
	$(PYTHON) -m pytest -n $(WORKERS) --ds=tests.support.minimal_settings -m "not slow and not browser" $(BARE_TESTS)
endif

# The tests of attacks, in one process and with more cases. They enforce the measured limits of time
# and memory; `make test` allows more.
faults: $(INSTALLED) ## Attack the service for about an hour, with measured budgets
	MEASURED_BUDGETS=1 CONTRACT_EXAMPLES=$(CONTRACT_EXAMPLES) $(PYTHON) -m pytest -v -s tests/hostile
	MEASURED_BUDGETS=1 OBSERVATION_EXAMPLES=$(OBSERVATION_EXAMPLES) OBSERVATION_STEPS=40 \
		MEMORY_EXAMPLES=$(MEMORY_EXAMPLES) MEMORY_STEPS=100 \
		$(PYTHON) -m pytest -v -n $(FAULT_WORKERS) tests/memory/test_races.py tests/memory/test_state_machine.py \
		tests/observational/test_faults.py tests/observational/test_database_faults.py \
		tests/observational/test_state_machine.py

lint: $(INSTALLED) ## Check style, templates, types, import rules and pending migrations
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/djlint --lint --quiet mastra_memory/templates templates
	$(PYTHON) -m mypy
	$(VENV)/bin/lint-imports
	DEFAULT_AUTO_FIELD=django.db.models.AutoField $(PYTHON) manage.py makemigrations --check
	DEFAULT_AUTO_FIELD=django.db.models.BigAutoField $(PYTHON) manage.py makemigrations --check

conformance: $(INSTALLED) ## Hold the API against recorded Mastra answers (SCENARIOS, CONFORMANCE_DIR)
	$(PYTHON) -m tests.contract.run

bench: $(INSTALLED) ## Measure against a real Mastra server (BENCH_JSON, PEER_DIR)
	$(PYTHON) -m benchmarks

bench-recall: $(INSTALLED) ## Measure how well and how fast messages are found (BENCH_JSON, RECALL_ONLY, RECALL_EMBEDDER, LOCOMO)
	$(PYTHON) -m benchmarks.recall

bench-context: $(INSTALLED) ## Measure what a context of limited size contains (BENCH_JSON, LOCOMO, CONTEXT_QUESTIONS)
	$(PYTHON) -m benchmarks.context

observation-peer: $(INSTALLED) ## Compare observational memory with Mastra's own (PEER_DIR, PEER_ONLY, PEER_STEPS)
	$(PYTHON) -m benchmarks.observational_peer

observation-plot: $(INSTALLED) ## Draw the tokens of a context over 2,000 messages, and check its budget
	$(PYTHON) -m benchmarks.observation_plot

browser: $(INSTALLED) $(BROWSER_MODULES) ## Walk through the admin in Chromium (CHROMIUM=path)
	$(PYTHON) -m pytest -m browser tests/browser

screenshots: $(INSTALLED) $(BROWSER_MODULES) ## Make the pictures in docs/screenshots
	$(PYTHON) -m pytest -m browser tests/browser/screenshots.py

$(BROWSER_MODULES): tests/browser/package-lock.json
	cd tests/browser && npm ci --silent --no-audit --no-fund
	@touch $@

clean: ## Remove the virtual environment and caches; var/ with your data stays
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .coverage .coverage.*

$(INSTALLED): requirements.txt
	@test -n "$(BASE_PYTHON)" || { echo "Python 3.11 or newer is needed, and no python3 was found."; exit 1; }
	@$(BASE_PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "Python 3.11 or newer is needed; $(BASE_PYTHON) is older. Set BASE_PYTHON."; exit 1; }
	@$(BASE_PYTHON) -c 'import ensurepip' 2>/dev/null || \
		{ echo "$(BASE_PYTHON) cannot make virtual environments: install its venv package."; exit 1; }
	$(BASE_PYTHON) -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --requirement requirements.txt
	@touch $@
