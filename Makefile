# Everything from a fresh clone, with nothing but Python: `make` says what there is.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check --quiet install
# First what was downloaded is compared with the checksums, then the project itself is installed.
LOCKED := $(PIP) --require-hashes --requirement
EDITABLE := $(PIP) --no-deps --no-build-isolation --editable .
TESTS  ?= tests

.DEFAULT_GOAL := help
.PHONY: help run quick test parts check bench soak fuzz conformance parity release clean

help:  ## list the verbs
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-6s  %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(VENV)/.installed  ## a cluster in one process, with pages; FLAGS='--nodes 100 --zones 3' for another one
	@$(BIN)/podium lab $(FLAGS)

quick: $(VENV)/.tools  ## lint, layers, and the tests that start no other program (under two minutes)
	$(BIN)/ruff check .
	$(BIN)/python -m pytest -n 2 -q -m 'not slow and not soak' $(TESTS)

test: $(VENV)/.tools parts  ## run all tests (TESTS=path for some of them)
	$(BIN)/python -m pytest -n 2 $(TESTS)

# What some tests need besides Python: a real control plane, a second kubectl, a clock that can be
# set, a browser. What cannot be had here is named, and its tests are skipped; in CI they fail.
parts:
	@for part in control-plane kubectl faketime browser; do tools/$$part >/dev/null || true; done

check: $(VENV)/.tools  ## lint, formatting, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q tests/test_layers.py

bench: $(VENV)/.tools  ## measure, and print the figures
	$(BIN)/python benchmarks/run.py

soak: $(VENV)/.tools  ## the tests of full size; what came of them is written to benchmarks/RESULTS.md
	$(BIN)/python benchmarks/soak.py

fuzz: $(VENV)/.tools  ## the random tests again, with many more and longer histories (hours)
	$(BIN)/python -m pytest -n 2 -m hypothesis --hypothesis-profile=soak --timeout=36000 $(TESTS)

conformance: $(VENV)/.tools  ## upstream's tests about scheduling and workloads on the lab; PODIUM_E2E_TEST is the path of e2e.test
	$(BIN)/python benchmarks/conformance.py

parity: $(VENV)/.tools  ## replay all recordings, and write docs/parity.md
	$(BIN)/python benchmarks/parity.py

release:  ## wheel, source archive, archive with Python inside, checksums, bill of materials, in dist/
	PYTHON=$(PYTHON) tools/release

clean:  ## remove the virtual environment and all caches
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find src tests examples -name __pycache__ -prune -exec rm -rf {} +

# A stamp says when the environment was last brought up to date, so the second call costs nothing.
$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo 'Podium needs Python 3.11 or later; say which with: make PYTHON=python3.11 …' >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: pyproject.toml requirements.lock | $(VENV)/.created
	$(LOCKED) requirements.lock
	$(EDITABLE)
	@touch $@

$(VENV)/.tools: pyproject.toml requirements.lock requirements-tools.lock | $(VENV)/.created
	$(LOCKED) requirements.lock --requirement requirements-tools.lock
	$(EDITABLE)
	@touch $@ $(VENV)/.installed
