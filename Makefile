# hardsynth: `make` lists what can be made.
VENV   ?= .venv
PYTHON ?= python3
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
DEMO   ?= hardsynth_demo

# Where it is set, as in many containers, every process compiles again what it imports: three
# seconds each for scikit-learn alone. Empty means unset.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lowest lint format docs docs-links bench bench-check clean

help:  ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## */  make \1\t/' | expand -t 20

$(READY): pyproject.toml resources/pip-constraints.txt
	@echo "installing into $(VENV), once: some minutes, most of them for torch ..."
	@$(PYTHON) -m venv $(VENV)
	@# Python compiles what it imports; to compile all of torch here takes longer than the download.
	@# What pip warns of, such as an index that it cannot reach, is shown only if it fails.
	@$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check \
	  -c resources/pip-constraints.txt -e '.[dev]' > $(VENV)/install.log 2>&1 \
	  || { cat $(VENV)/install.log; exit 1; }
	@touch $@

demo: $(READY)  ## a first look: three small hard tasks, from data to an answer, in a minute
	@$(BIN)/hardsynth demo -o $(DEMO)

# A process that has nothing left to do takes over half of what waits for the other.
TESTS := -m pytest -q -n logical --maxprocesses 4 --dist worksteal

test: $(READY)  ## the tests; those that need AMLB or other data skip with their reason
	$(BIN)/python $(TESTS)

test-all: $(READY)  ## the tests, and the exhaustive ones that `make test` leaves out
	HARDSYNTH_EXHAUSTIVE=1 $(BIN)/python $(TESTS)

lint: $(READY)  ## style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The site's tools come into the same environment, which has everything that the tutorials run.
DOCS_READY := $(VENV)/.docs-ready
SPHINX := OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -W --keep-going

$(DOCS_READY): $(READY)
	@$(BIN)/python -m pip install -q --no-compile --disable-pip-version-check \
	  -c resources/pip-constraints.txt -e '.[docs]' > $(VENV)/install-docs.log 2>&1 \
	  || { cat $(VENV)/install-docs.log; exit 1; }
	@touch $@

docs: $(DOCS_READY)  ## the documentation, docs/_build/html/index.html (three minutes; warnings are errors)
	$(SPHINX) -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

docs-links: $(DOCS_READY)  ## look at the links that lead outside; needs the network
	$(SPHINX) -b linkcheck docs docs/_build/linkcheck

BENCH_VENV  ?= .venv-bench
BENCH_READY := $(BENCH_VENV)/.ready
# Processor time: with one thread it is what the work took, whatever else the machine does.
BENCH := OMP_NUM_THREADS=1 $(BENCH_VENV)/bin/python -m pytest -q -p no:cacheprovider \
  benchmarks/speed/bench_*.py --benchmark-json=$(BENCH_VENV)/bench_$$run.json \
  --benchmark-timer=time.process_time \
  --benchmark-columns=median,rounds

$(BENCH_READY): pyproject.toml resources/pip-constraints.txt
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BENCH_VENV)/bin/python -m pip install -q --disable-pip-version-check \
	  -c resources/pip-constraints.txt pytest -e '.[bench]'
	@touch $@

RUNS ?= 1 2 3

bench: $(BENCH_READY)  ## what things cost, as ratios, into docs/evidence/speed.md (three runs, 45 minutes)
	for run in $(RUNS); do $(BENCH) || exit 1; done
	$(BENCH_VENV)/bin/python -m benchmarks.speed.ratios \
	  $(foreach run,$(RUNS),$(BENCH_VENV)/bench_$(run).json) \
	  --keep benchmarks/speed/ratios.json --page docs/evidence/speed.md

bench-check: $(BENCH_READY)  ## fail where a kept ratio became worse by more than 25 %
	run=check; $(BENCH)
	$(BENCH_VENV)/bin/python -m benchmarks.speed.ratios $(BENCH_VENV)/bench_check.json \
	  --check benchmarks/speed/ratios.json

LOWEST_VENV   ?= .venv-lowest
LOWEST_PYTHON ?= python3.11

$(LOWEST_VENV)/.ready: pyproject.toml resources/lowest-versions.txt
	$(LOWEST_PYTHON) -m venv $(LOWEST_VENV)
	$(LOWEST_VENV)/bin/python -m pip install -q --disable-pip-version-check \
	  -c resources/lowest-versions.txt -e '.[dev]'
	@touch $@

lowest: $(LOWEST_VENV)/.ready  ## all tests with the lowest declared versions (torch alone is newer)
	$(LOWEST_VENV)/bin/python $(TESTS) \
	  -W ignore::DeprecationWarning -W ignore::FutureWarning \
	  -W 'ignore:pickle-based deserialization:RuntimeWarning'

format: $(READY)  ## bring the code into shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove what the other targets made
	rm -rf $(VENV) $(BENCH_VENV) $(LOWEST_VENV) $(DEMO) .mypy_cache docs/_build docs/auto_tutorials docs/reference/api \
	  .pytest_cache .ruff_cache .hypothesis build dist
