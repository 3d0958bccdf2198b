# Two commands do everything: `make figures` and `make test`. Python ≥ 3.11 is all they need.
#
# Every notebook is one file target, build/NN-topic.ipynb, made from notebooks/NN-topic.ipynb and the module.
# Variables on the command line are the notebooks' parameters: make figures RUNS=1000 SEED=2.

PYTHON ?= python3
VENV ?= .venv

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDEXPANSION:
.SUFFIXES:
.PHONY: help figures test quick notebooks ledger bench lab env lock clean FORCE

# An active conda environment made from environment.yml already holds the lock; else make a virtual one.
ifeq ($(CONDA_DEFAULT_ENV),ebr)
BIN := $(CONDA_PREFIX)/bin
READY := build/conda-ready
else
BIN := $(VENV)/bin
READY := $(VENV)/ready
endif

NOTEBOOKS := $(wildcard notebooks/*.ipynb)
LEDGER := notebooks/00-ledger.ipynb# joins what the others found, so it comes last
MODULE := $(shell find ebr -name "*.py" -o -name "*.mplstyle")
# NOTEBOOK:MODULE for every compendium module that a notebook uses.
NEEDS := $(shell $(PYTHON) tools/needs.py)
EXECUTE := $(BIN)/python tools/execute.py

# Kernels come from this environment, even where the user's home has one of the same name.
export JUPYTER_PREFER_ENV_PATH := 1

# The parameters: whatever is set on the command line and is not a setting of this file, and RUNS and SEED
# from the environment as well.
SETTINGS := PYTHON VENV BIN READY DASK
given = $(foreach word,$(MAKEOVERRIDES),$(if $(findstring =,$(word)),$(firstword $(subst =, ,$(word)))))
inherited = $(foreach name,RUNS SEED,$(if $(filter environment,$(origin $(name))),$(name)))
PARAMETERS := $(foreach name,$(sort $(filter-out $(SETTINGS),$(given)) $(inherited)),'$(name)=$($(name))')

help: ## Print this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

figures: $(NOTEBOOKS:notebooks/%=build/%) ## Execute every notebook and write figures/ (RUNS=… SEED=… pass through)

# FORCE, when a file that the notebook wrote is no longer there.
lost = $(shell cat build/$(1).written 2>/dev/null | while read -r file; do test -e "$$file" || echo FORCE; done)

needed = $(patsubst $(1):%,notebooks/compendium/%.py,$(filter $(1):%,$(NEEDS)))

build/%.ipynb: notebooks/%.ipynb $(MODULE) $$(call needed,$$*) tools/execute.py $(READY) build/parameters \
               $$(sort $$(call lost,$$*))
	@$(EXECUTE) $< $@ $(PARAMETERS)

build/00-ledger.ipynb: $(wildcard claims.yaml) $(patsubst notebooks/%,build/%,$(filter-out $(LEDGER),$(NOTEBOOKS)))

# Changes only when the parameters do, so that the same command twice does nothing.
build/parameters: FORCE | $(READY)
	@mkdir -p build
	@printf '%s\n' $(PARAMETERS) | cmp -s - $@ || \
	{ $(EXECUTE) --check $(PARAMETERS) && printf '%s\n' $(PARAMETERS) > $@; }

test: $(READY) ## Lint, type-check, run the tests and re-run every notebook against what is committed
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@rm -rf build/check
	EBR_FIGURES=$(CURDIR)/build/check $(BIN)/python -m pytest -q -n 2 --dist loadscope \
	    --nbval --nbval-current-env --nbval-cell-timeout 600 tests notebooks
	EBR_FIGURES=$(CURDIR)/build/check $(BIN)/python -m pytest -q -m reproduction tests

quick: $(READY) ## Lint, types and the unit tests of the package, without the slow ones: the inner loop
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -x -n 2 --dist worksteal -m "not slow and not reproduction" --ignore tests/compendium tests

notebooks: $(patsubst notebooks/%.ipynb,refresh-%,$(filter-out $(LEDGER),$(NOTEBOOKS))) ## Re-execute the committed notebooks in place
	@$(if $(wildcard $(LEDGER)),$(EXECUTE) --in-place $(LEDGER))

refresh-%: $(READY) FORCE
	@$(EXECUTE) --in-place notebooks/$*.ipynb

ledger: $(READY) ## Join claims.yaml with what the notebooks found; write the README's part and notebook 00
	@$(BIN)/python tools/ledger.py
	@$(EXECUTE) --in-place $(LEDGER)

bench: $(READY) ## Measure the simulator's speed against yardsticks in the same run
	@$(BIN)/python tools/bench.py

lab: $(READY) ## Open JupyterLab on this environment's kernel
	$(BIN)/jupyter lab --notebook-dir notebooks

env: $(READY) ## Install everything from the lock

# The lock's own uv installs it in seconds; where uv cannot reach an index that pip can, pip does.
$(VENV)/ready: requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Python 3.11 or newer is needed, this is " + sys.version)'
	$(PYTHON) -m venv --clear $(VENV)
	@sed -n '/^uv==/,/[^\\]$$/p' requirements.txt > $(VENV)/uv.txt
	{ $(BIN)/python -m pip install --quiet -r $(VENV)/uv.txt && \
	  $(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes -r requirements.txt; } || \
	$(BIN)/python -m pip install --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

build/conda-ready: requirements.txt pyproject.toml
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@mkdir -p build && touch $@

lock: $(READY) ## Renew requirements.txt from pyproject.toml
	$(BIN)/uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --upgrade \
	    --generate-hashes --extra dev --custom-compile-command "make lock" \
	    --output-file requirements.txt pyproject.toml

clean: ## Remove what can be made again: build/ and the environment
	rm -rf build $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis
