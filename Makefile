# The daily verbs. `make demo` and `make test` need nothing but Python 3.11 or newer and this folder.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip install --quiet
# Builds of torch for CPUs, a tenth of the size of those with CUDA, where this index can be reached; `make demo TORCH_INDEX=`
# takes the default ones.
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
export OMP_NUM_THREADS ?= 1

.PHONY: demo test lint types layers learn bench matrix kill mutate attack soak weekly gpu docs dist clean help

help:  ## list the verbs
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | sort

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(PIP) --no-deps --retries 0 --timeout 10 --index-url $(TORCH_INDEX) torch==2.13.0 2>/dev/null ||) \
		$(PIP) --constraint constraints.txt torch==2.13.0
	$(PIP) --constraint constraints.txt --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)  ## train the default recipe to a visible result, about three minutes
	$(BIN)/edgewise train graphwalk-ppo

test: $(STAMP)  ## the default tests, two workers
	$(BIN)/python -m pytest -n 2 --dist worksteal -m "not learning and not thorough and not gpu"

lint: $(STAMP)  ## format and lint
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)  ## mypy, strict
	$(BIN)/mypy

layers: $(STAMP)  ## the import contracts
	$(BIN)/lint-imports

learn: $(STAMP)  ## the runs that must learn; long
	$(BIN)/python -m pytest -n 2 -m learning tests/learning tests/examples

bench: $(STAMP)  ## every benchmark of the core, as tables and JSON
	$(BIN)/edgewise bench core

matrix: $(STAMP)  ## try every algorithm in every environment, and write the table in docs/matrix.md
	$(BIN)/python -m benchmarks.matrix --write docs/matrix.md --results .matrix.jsonl

kill: $(STAMP)  ## kill runs of several recipes a hundred times and compare them with runs that were left alone
	$(BIN)/python -m benchmarks.kill_resume --kills 100 --runs 1 --recipe all

attack: $(STAMP)  ## damaged folders, links, devices, forged and random inputs, kills; about half an hour
	$(BIN)/python -m tests.attack
	$(BIN)/python -m tests.attack.kills
	$(BIN)/python -m pytest -n 2 -m thorough tests

soak: $(STAMP)  ## whether memory or open files grow over 100,000 batches; two hours at most
	$(BIN)/python -m benchmarks.soak

mutate: $(STAMP)  ## plant the listed faults one at a time and print which no test noticed
	$(BIN)/python -m tests.mutation.mutate

weekly: $(STAMP)  ## what no daily verb runs, in at most four hours; the next run goes on where this one stops
	$(BIN)/python -m tests.weekly

gpu: $(STAMP)  ## every recipe and environment on a CUDA device; says so where there is none
	$(BIN)/python -m pytest -m gpu -rs tests/gpu

dist: $(STAMP)  ## build wheel and sdist, install each beside torch in a new environment and use it there
	$(BIN)/python -c "from hatchling import build; build.build_wheel('dist'); build.build_sdist('dist')"
	$(BIN)/python -m pytest -m thorough tests/release

docs: $(STAMP)  ## build the site; every warning is an error
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[docs]'
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "the site: docs/_build/html/index.html"

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) dist build docs/_build runs .mypy_cache .ruff_cache .hypothesis .pytest_cache .import_linter_cache .mutate .matrix.jsonl
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
