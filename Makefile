# The one list of things to run. CI and pre-commit call these same targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
BASE   := $(VENV)/.base-stamp
STAMP  := $(VENV)/.setup-stamp
# Passed on to what a target runs: `make run ARGS=--headless`, `make test ARGS=tests/core`.
ARGS   ?=

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Where it is set, every process that the tests start would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE
# With no home there is no place for pip's cache, and `/.cache` is not ours.
ifeq ($(strip $(HOME)),)
export PIP_CACHE_DIR := $(CURDIR)/$(VENV)/pip-cache
endif

UNCOMPILED := 'site-packages/((huggingface_hub|kubernetes|mypyc?|onnxruntime|pygments/lexers)/|.*/tests/)'

.DEFAULT_GOAL := help
.PHONY: help setup machine run test check judge bench snapshot-update docs films lock format lint types contracts build image

help:  ## show this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

setup: $(STAMP)  ## make .venv from the lock, with all extras and tools (again only when lock or pyproject changed)

# What a user installs: all that `make run` needs. Nothing comes that is not in a lock, what builds our package neither.
$(BASE): requirements.lock requirements-build.lock pyproject.toml
	@$(MAKE) --no-print-directory machine
	@echo "Setting up $(VENV), once: this takes about half a minute, most of it in silence." >&2
	$(PYTHON) -m venv $(VENV)
	$(call install,-r requirements.lock -r requirements-build.lock)
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(STAMP): requirements-dev.lock $(BASE)
	@echo "Adding extras and tools to $(VENV), once: this takes a minute or two, most of it in silence." >&2
	$(call install,-r requirements-dev.lock)
	@touch $@

# Some libraries bring files of other Pythons. What is not compiled is most of it, and never imported.
define install
$(BIN)/python -m pip install --quiet --no-compile --require-hashes $(1)
	@$(BIN)/python -m compileall -q -j 0 -x $(UNCOMPILED) $(VENV)/lib src >/dev/null || true
endef

machine:  # what pip cannot bring: a Python that is new enough, and on Linux the OpenMP runtime
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
		|| { echo "Python 3.11 or newer is needed: make setup PYTHON=python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ctypes, sys; sys.platform == "linux" and ctypes.CDLL("libgomp.so.1")' 2>/dev/null \
		|| { echo "libgomp1 is missing: apt-get install libgomp1" >&2; exit 1; }

run: $(BASE)  ## the demo: `make run`, or `make run ARGS=--headless`
	@$(BIN)/agent demo $(ARGS)

test: setup  ## the quick tests, or all of those that are named: `make test ARGS=tests/core`
	$(BIN)/python -m pytest $(if $(strip $(ARGS)),$(ARGS),-m "not slow")

# The quick checks first; then the types beside the tests, which often wait. Types are what may be in the background:
# there Ctrl-C is ignored, which tests try.
check: setup format-check lint contracts  ## all that CI checks, with all tests
	@$(MAKE) --no-print-directory types & types=$$!; $(MAKE) --no-print-directory test ARGS=tests; tests=$$?; \
		wait $$types && exit $$tests

judge: setup  ## what others wrote, run against us, and a new user's journeys with their installation
	$(BIN)/python -m pytest -n0 tests/judges

.PHONY: format-check
format-check: setup
	$(BIN)/ruff format --check .

format: setup  ## format the code and mend what ruff can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: setup  ## ruff
	$(BIN)/ruff check .

types: setup  ## mypy, strict
	$(BIN)/mypy

contracts: setup  ## import-linter: who may import whom
	$(BIN)/lint-imports --no-logo

bench: setup  ## the benchmarks
	$(BIN)/python -m bench $(ARGS)

snapshot-update: setup  ## accept the screens as they are now
	$(BIN)/python -m pytest -n0 --snapshot-update $(ARGS)

docs: setup  ## the reference from the code, and the documentation site into site/
	$(BIN)/python -m docgen
	$(BIN)/zensical build --strict

films: setup  ## record the films of the documentation again, from the pages whose commands are tested
	$(BIN)/python -m tests.docs.films

build: setup  ## sdist, wheel and their checksums into dist/
	@rm -f dist/*
	$(BIN)/python -m build --no-isolation --outdir dist
	@cd dist && { sha256sum *.whl *.tar.gz 2>/dev/null || shasum -a 256 *.whl *.tar.gz; } > SHA256SUMS

# `make image IMAGE=registry.example/org/repo:tag`; the version in it names the commit too.
IMAGE   ?= agent-workbench:latest
VERSION  = $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' src/agent_workbench/core/version.py)
image:  ## container image of the worker and the MCP server
	docker build --file deploy/Dockerfile --tag "$(IMAGE)" \
		--build-arg VERSION="$(VERSION)$$(git rev-parse --short HEAD 2>/dev/null | sed 's/^/+g/')" .

# uv only resolves; it is not needed for anything else and not kept. `make lock UPGRADE=--upgrade` takes newer versions.
# The base and the tools have the versions of the lock with all extras; the last one is what builds our package.
UPGRADE ?=
COMPILE  = "$$tools/bin/uv" pip compile --no-config --cache-dir "$$tools/cache" --quiet --universal \
	--python-version 3.11 --fork-strategy fewest --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock"
lock:  ## resolve requirements*.lock anew from pyproject.toml
	@set -eu; tools="$$(mktemp -d)"; trap 'rm -rf "$$tools"' EXIT; \
	$(PYTHON) -m venv "$$tools"; \
	"$$tools/bin/pip" install --quiet "uv>=0.8"; \
	$(COMPILE) $(UPGRADE) pyproject.toml --all-extras --output-file requirements-all.lock; \
	$(COMPILE) pyproject.toml --constraint requirements-all.lock --output-file requirements.lock; \
	$(COMPILE) $(UPGRADE) pyproject.toml --all-extras --group dev --constraint requirements-all.lock \
		--output-file requirements-dev.lock; \
	$(COMPILE) --group build --constraint requirements-dev.lock --output-file requirements-build.lock
