# Everything a newcomer needs. `make help` lists the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Each worker computes on one thread; a test moves to the worker that has nothing left to do.
WORKERS ?= 2
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --durations=25

.DEFAULT_GOAL := help
.PHONY: help setup browser test quick lint demo bench results wheel clean

help: ## list the commands
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | sort | awk -F'\t' '{printf "  make %-8s %s\n", $$1, $$2}'

setup: $(READY) ## make .venv with the package, all extras and the tools; nothing to do the second time

# torch comes first and alone, in the version that the constraints name, so that no other package chooses its build.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "gbdgc needs Python 3.11 or newer: make setup PYTHON=python3.11")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	@echo "torch: some hundred megabytes, a minute or two"
	$(BIN)/python -m pip install $$(grep '^torch==' constraints.txt)
	@echo "everything else"
	$(BIN)/python -m pip install -c constraints.txt --group dev -e ".[all]"
	@touch $@
	@echo "ready: $(BIN)/gbdgc --help"

browser: ## Debian's chromium, for the tests of the page and the report
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
	  && apt-get update -qq && apt-get install -y -qq chromium >/dev/null; } \
	  || echo "no chromium here: install it (Debian: apt-get install chromium) to run the browser tests too"

test: lint browser ## lint, types and all tests with coverage (what CI runs)
	$(PYTEST) --cov --cov-report=term

quick: lint ## the same without the slow tests
	$(PYTEST) -m "not slow"

lint: setup ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

demo: setup ## the main job on built-in data
	$(BIN)/python -m gbdgc.demo

bench: setup ## print the ratios that the documentation speaks of
	for script in $(filter-out %/timing.py %/shifts.py %/former_compact.py %/descriptors.py %/calibration.py %/tuning.py %/averaging.py %/encoders.py %/regions.py %/empty.py,$(wildcard benchmarks/*.py)); do $(BIN)/python $$script || exit 1; done

results: setup ## make the tables on the pages again from results/
	test -d results
	for folder in $$(find results -name cells | xargs dirname | sort); do \
	  pages=$$(grep -lE "<!-- gbdgc benchmark $$folder(:| )" README.md docs/*results.md); \
	  $(BIN)/gbdgc benchmark $$(basename $$folder) --tables-only --out $$(dirname $$folder) $${pages:+--pages $$pages} || exit 1; done

wheel: ## build dist/ for an index; TAG=v1.2.3 must be the version, GBDGC_REPOSITORY the address that links lead to
	$(PYTHON) -m pip wheel --no-deps --wheel-dir dist .
	@test -z "$(TAG)" || ls dist/gbdgc-$(patsubst v%,%,$(TAG))-*.whl

clean: ## remove what the commands made, keep .venv
	rm -rf runs .pytest_cache .mypy_cache .ruff_cache .coverage dist
