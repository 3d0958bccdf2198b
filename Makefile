# Two commands do everything: `make figures` and `make test`. Python ≥ 3.11 is all they need.
#
# Every notebook is one file target, build/NN-topic.ipynb, made from notebooks/NN-topic.ipynb and the module.
# Variables on the command line are the notebooks' parameters: make figures RUNS=1000 SEED=2.

PYTHON ?= python3
# From the command line alone: the name is a common one in people's environments.
VENV := .venv
# It is a target and part of commands: what means something to make or to a shell is refused, unread.
MEANING := ; & | < > ( ) [ ] { } * ? ! ` ' " \ \# $$
$(if $(word 2,$(value VENV))$(strip $(foreach mark,$(MEANING),$(findstring $(mark),$(value VENV)))),\
    $(error VENV must be a path without spaces and signs that shells read, got "$(value VENV)"))

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SECONDEXPANSION:
.SUFFIXES:
.PHONY: help figures test check-types check-suite quick notebooks ledger bench times lab env lock clean FORCE

# The parameters: whatever is set on the command line and is not a setting of this file, and RUNS and SEED
# from the environment as well. They are handed on unread, before anything else happens: make would run the
# $(shell …) in a value, and does so even to export a variable of its command line.
SETTINGS := PYTHON VENV BIN READY DASK SHELL EBR_WORKERS EBR_CACHE OMP_NUM_THREADS
given := $(foreach name,$(.VARIABLES),$(if $(filter command,$(origin $(name))),$(name)))
inherited := $(foreach name,RUNS SEED,$(if $(filter environment,$(origin $(name))),$(name)))
define hand_on
unexport $(1)
export EBR_PARAMETER_$(1) := $$(value $(1))
endef
$(foreach name,$(filter-out $(SETTINGS),$(given)) $(inherited),$(eval $(call hand_on,$(name))))

# An active conda environment made from environment.yml already holds the lock; else make a virtual one.
ifeq ($(CONDA_DEFAULT_ENV),ebr)
BIN := $(CONDA_PREFIX)/bin
READY := build/conda-ready
else
BIN := $(VENV)/bin
READY := $(VENV)/ready
endif

# The longest come first, so that no core is left waiting for one of them at the end (`make times` measures);
# of those with points in common, 09 before 08 and 07, which find them simulated.
LONGEST := 09-sharp-racing 10-failure-probability 16-modern-rivals 17-stakes 12-tuning \
           15-budget-and-deadline 08-choices 04-lower-bounds 03-upper-bounds 14-top-k 19-two-arms \
           13-the-price-of-a-deadline 05-two-rounds 18-around-the-theorems 11-clinical-trial A1-gaussian-looks \
           20-what-trials-need 07-simulations
LEDGER := notebooks/00-ledger.ipynb# joins what the others found, so it comes last
FOUND := $(wildcard notebooks/*.ipynb)
FIRST := $(filter $(FOUND),$(LONGEST:%=notebooks/%.ipynb))
NOTEBOOKS := $(FIRST) $(filter-out $(FIRST) $(LEDGER),$(FOUND)) $(filter $(LEDGER),$(FOUND))
GALLERY := $(wildcard notebooks/gallery/*.ipynb)# short examples, which make no figures of the compendium
MODULE := $(shell find ebr -name "*.py" -o -name "*.mplstyle" -o -name "*.html")
# NOTEBOOK:MODULE for every compendium module that a notebook uses; asked for once, by the first who needs it.
NEEDS = $(eval NEEDS := $$(shell $$(PYTHON) tools/needs.py))$(NEEDS)
INTERPRETER := "$(BIN)/python"# and its tools as modules: a script names the Python that it was installed for
EXECUTE := $(INTERPRETER) tools/execute.py

# All cores (nproc would count OMP_NUM_THREADS), unless a number of jobs is given, where every goal is a notebook.
CORES := $(shell env -u OMP_NUM_THREADS nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
ifeq ($(or $(filter -j%,$(MAKEFLAGS)),$(filter-out figures notebooks,$(or $(MAKECMDGOALS),help))),)
MAKEFLAGS += -j$(CORES)
endif
# Notebooks that run side by side leave each other the cores: one process and one thread each.
beside = $(filter-out -j1,$(filter -j%,$(MAKEFLAGS)))
share = $(if $(beside),1,$(CORES))
export EBR_WORKERS = $(share)
export OMP_NUM_THREADS = $(share)

# The memory of freed arrays is kept for the next (where the C library is glibc): in simulations nine of ten
# page faults less, and 4 % of the time.
export MALLOC_TRIM_THRESHOLD_ := 268435456
export MALLOC_MMAP_THRESHOLD_ := 67108864

# A checkout runs its own sources, whatever the environment has installed.
export PYTHONPATH := $(CURDIR):$(CURDIR)/notebooks
# Without compiled modules on the disk every kernel spends seconds on compiling the same ones.
unexport PYTHONDONTWRITEBYTECODE
# Kernels come from this environment, even where the user's home has one of the same name.
export JUPYTER_PREFER_ENV_PATH := 1
# Where sweeps keep the points that they have simulated.
export EBR_CACHE := $(CURDIR)/build/cache

help: ## Print this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

figures: $(NOTEBOOKS:notebooks/%=build/%) ## Execute every notebook and write figures/ (RUNS=… SEED=… pass through)

# The notebooks of which a file that they wrote is no longer there. Looked up at once: a look for each would
# take longer than build/parameters, and those looked at last would start first.
LOST := $(shell for list in build/*.written; do test -e "$$list" && while read -r file; do \
          test -e "$$file" || basename "$$list" .written; done < "$$list"; done)

needed = $(patsubst $(1):%,notebooks/compendium/%.py,$(filter $(1):%,$(NEEDS)))

build/%.ipynb: notebooks/%.ipynb $(MODULE) $$(call needed,$$*) tools/execute.py $(READY) build/parameters \
               $$(if $$(filter $$*,$(LOST)),FORCE)
	@$(EXECUTE) $< $@

build/00-ledger.ipynb: $(wildcard claims.yaml) $(patsubst notebooks/%,build/%,$(filter-out $(LEDGER),$(NOTEBOOKS)))

# Changes only when the parameters do, so that the same command twice does nothing.
build/parameters: FORCE | $(READY)
	@$(INTERPRETER) tools/parameters.py $@

test: $(READY) ## Lint, type-check, run the tests and re-run every notebook against what is committed
	$(INTERPRETER) -m ruff check
	$(INTERPRETER) -m ruff format --check
	@+$(MAKE) --no-print-directory -j2 check-types check-suite

# Again the longest first: one worker has a module to itself.
LONG_TESTS := tests/site tests/compendium $(wildcard tests/test_*.py)
TESTS := $(LONG_TESTS) $(filter-out $(LONG_TESTS) %/__pycache__,$(patsubst %/,%,$(wildcard tests/*/)))

# Side by side: types take one core the best part of a minute where there is no cache.
check-types: $(READY)
	$(INTERPRETER) -m mypy

check-suite: $(READY)
	@rm -rf build/check build/check-cache
	EBR_FIGURES="$$PWD/build/check" EBR_CACHE="$$PWD/build/check-cache" EBR_WORKERS=1 OMP_NUM_THREADS=1 $(INTERPRETER) -m pytest -q -rs -n $(CORES) --dist loadscope \
	    --no-loadscope-reorder --nbval --nbval-current-env --nbval-cell-timeout 600 $(NOTEBOOKS) $(GALLERY) $(TESTS)
	EBR_FIGURES="$$PWD/build/check" $(INTERPRETER) -m pytest -q -m reproduction tests/test_reproduction.py

quick: $(READY) ## Lint, types and the unit tests of the package, without the slow ones: the inner loop
	$(INTERPRETER) -m ruff check
	$(INTERPRETER) -m ruff format --check
	$(INTERPRETER) -m mypy
	$(INTERPRETER) -m pytest -q -x -n $(CORES) --dist worksteal -p no:nbval -m "not slow and not reproduction" --ignore tests/compendium tests

notebooks: $(patsubst notebooks/%.ipynb,refresh-%,$(filter-out $(LEDGER),$(NOTEBOOKS))) ## Re-execute the committed notebooks in place
	@$(foreach one,$(GALLERY) $(filter $(LEDGER),$(FOUND)),$(EXECUTE) --in-place $(one) &&) true

refresh-%: $(READY) FORCE
	@$(EXECUTE) --in-place notebooks/$*.ipynb

ledger: $(READY) ## Join claims.yaml with what the notebooks found; write the README's part and notebook 00
	@$(INTERPRETER) tools/ledger.py
	@$(EXECUTE) --in-place $(LEDGER)

bench: $(READY) ## Measure the simulator's speed against yardsticks in the same run
	@$(INTERPRETER) tools/bench.py

times: $(READY) ## Measure `make figures` and `make test` here, from an empty build/, and each notebook
	@MAKE="$(MAKE)" $(INTERPRETER) tools/times.py

lab: $(READY) ## Open JupyterLab on this environment's kernel
	$(INTERPRETER) -m jupyterlab --notebook-dir notebooks --KernelManager.transport_encryption=auto

.PHONY: site
site: $(READY) ## Write the site to build/site: the notebooks, the ledger, the reference
	@$(INTERPRETER) site/publish.py

env: $(READY) ## Install everything from the lock

# FORCE, when the environment was copied or moved with the checkout, or the Python that it was made from is gone.
strayed = $(shell test -x $(VENV)/bin/python && test "$$(sed -n 1p $(VENV)/ready)" = "$$(pwd -P)" || echo FORCE)

$(VENV)/ready: requirements.txt pyproject.toml $(strayed)
	@$(PYTHON) tools/environment.py make $(VENV)

build/conda-ready: requirements.txt pyproject.toml
	$(INTERPRETER) -m pip install --quiet --no-deps --no-build-isolation --editable .
	@mkdir -p build && touch $@

lock: $(READY) ## Renew requirements.txt from pyproject.toml
	$(INTERPRETER) -m uv pip compile --quiet --universal --fork-strategy fewest --python-version 3.11 --upgrade \
	    --generate-hashes --extra dev --custom-compile-command "make lock" \
	    --output-file requirements.txt pyproject.toml

clean: ## Remove what can be made again: build/ and the environment
	rm -rf build .pytest_cache .ruff_cache .hypothesis
	@$(PYTHON) tools/environment.py remove $(VENV)
