# Everything a person does with a clone. `make help` lists it.
SHELL := /bin/sh
.DEFAULT_GOAL := help

# The first of these that is there and new enough; or `make setup PYTHON=/path/to/python3`.
PYTHON ?= $(shell for python in python3.11 python3.12 python3.13 python3; do \
	$$python -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && exit; \
	done; echo python3)
BIN := .venv/bin
# Modules are compiled as they are first imported; without that each start of Airflow would take twice as long.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup develop preflight demo up down test test-most test-dags test-slow test-laws test-unit test-faults test-compose test-browser bench check format lock clean

help: ## List these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

preflight: ## Say what this machine lacks, and how to install it
	@$(PYTHON) infra/preflight.py

setup: ## Build both environments and fetch the jars into this folder
	@$(PYTHON) infra/setup.py

develop: ## The same, with what checks, tests, benchmarks and the demo need
	@$(PYTHON) infra/setup.py develop

demo: develop ## From nothing to merged answers, a batch run and a green verify
	@./tidemark demo

up: setup ## Start the platform
	@./tidemark up

down: ## Stop the platform
	@./tidemark down

check: develop ## Lint, format, types, and which package imports which
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: check ## Everything but what is slow, faults and benchmarks; needs no running platform. COVERAGE=1 counts the lines that run
	@$(MAKE) --no-print-directory --jobs=2 test-most test-dags

test-most:
	@$(BIN)/pytest -n 2 --no-loadscope-reorder -m "not slow and not fault and not bench and not compose and not browser" \
		$(if $(COVERAGE),--cov=spark_jobs --cov-report=term --cov-fail-under=85)

# In Airflow's environment; beside the others, which wait for the platform now and then.
test-dags:
	@.venv-airflow/bin/pytest -q -c tests/dags/pytest.ini tests/dags

test-slow: develop ## The rest of what `make test` tries in part (every view, every door, a project of one's own), and training
	@$(BIN)/pytest -n 2 --no-loadscope-reorder -m "slow and not fault"

test-laws: develop ## The laws, and both engines, on five times as many examples
	@$(BIN)/pytest -n 2 --hypothesis-profile=whole tests/laws tests/spark/test_expressions_agree.py \
		tests/spark/test_queries_agree.py

test-unit: develop ## The tests that need neither Java nor Airflow
	@$(BIN)/pytest tests/unit tests/laws

test-faults: develop ## The slow ones: kill parts of the platform at load and see it heal, backfill several days
	@$(BIN)/pytest -m fault

test-compose: develop ## Build the images, run docker-compose.yml, use it from outside, kill its parts
	@$(BIN)/pytest -m compose tests/compose

test-browser: develop ## Walk through the pages in Chromium; PICTURES=docs/runbooks/pictures keeps a picture of each step
	@$(BIN)/pytest -m browser tests/browser

bench: develop ## Measure throughput, freshness and answers, against peers
	@$(BIN)/python -m tests.bench

format: develop ## Let ruff fix and format
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: setup ## Resolve the lock files anew, after a change of infra/locks/*.in or *.xml
	@$(PYTHON) infra/lock.py $(if $(UPGRADE),--upgrade)

clean: ## Stop, and remove environments, jars and caches; the state of the platform stays
	@if [ -x .venv/bin/tidemark ]; then ./tidemark down; fi
	@rm -rf .venv .venv-airflow .venv-flink .venv-pathway .jars .jars-* .setup .mypy_cache .ruff_cache .import_linter_cache .pytest_cache .hypothesis build
