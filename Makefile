# Two commands do all the set-up: `make mrpc` runs the main job, `make test` checks the project.
# PYTHON=python3.12 picks another interpreter (3.10 to 3.13). `make help` lists all targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The environment is stale when the lock or the interpreter's version changes: both name the stamp.
LOCK_SUM := $(shell cksum < requirements.lock | cut -d' ' -f1)
PYTHON_VERSION := $(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null)
STAMP := $(VENV)/.installed-$(PYTHON_VERSION)-$(LOCK_SUM)

.PHONY: help install mrpc test lint pytest test-ci durations test-tf1 test-slow test-torch test-clients check-gpu audit docs bench-setup bench conformance format lock clean

help:  ## this list
	@awk -F ':.*  ## ' '/^[a-z0-9-]+:.*  ## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(STAMP)  ## the environment alone

mrpc: $(STAMP)  ## fine-tune on a small sample of MRPC that comes with the project
	$(BIN)/python run_classifier.py --task_name=MRPC

test: lint pytest  ## lint, and the tests that take minutes: the check of a change

lint: $(STAMP)  ## style (ruff) and the types of public functions (mypy)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The tests, and the worked examples in docstrings. tests/conftest.py orders the files: long ones first.
# By files, as workers that steal single tests (--dist worksteal) train and export again what a file
# shares: tests/scripts/every_family_test.py took 445 s so, where by files even more of its tests took 253 s.
# A worker that dies is not replaced: its last test would be run again, and may hang.
PYTEST := $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder --max-worker-restart=0
SOURCES := --doctest-modules bert $(wildcard *.py) tests
pytest: $(STAMP)  ## the tests alone
	$(PYTEST) --durations=10 -m "not slow and not ci" $(SOURCES)

# One session, so that what several tests need is trained and exported once.
test-ci: $(STAMP)  ## all tests but the longest: also exports, backends, kills, pages, wheels
	$(PYTEST) --durations=40 -m "not slow" $(SOURCES)

durations: $(STAMP)  ## the same, and record how long each file takes, by which they are ordered
	BERT_RECORD_DURATIONS=1 $(PYTEST) --durations=40 -m "not slow" $(SOURCES)

# They switch TensorFlow to graphs for their whole process: a session of their own.
test-tf1: $(STAMP)  ## the tests of tf1/, which runs scripts of TensorFlow 1.x
	$(PYTEST) --durations=10 -m "not slow" tf1

# What takes longer still, before a release.
test-slow: $(STAMP)  ## the longest tests, before a release
	$(BIN)/python -m pytest -m slow -o faulthandler_timeout=0

# The Keras face on PyTorch, in an environment of its own.
TORCH_VENV := .torch-venv
TORCH_LIST := tests/torch_requirements.txt
TORCH_STAMP := $(TORCH_VENV)/.installed-$(PYTHON_VERSION)-$(shell cksum < $(TORCH_LIST) | cut -d' ' -f1)

test-torch: $(STAMP) $(TORCH_STAMP)  ## the Keras side on PyTorch, in an environment of its own
	KERAS_BACKEND=torch $(TORCH_VENV)/bin/python -m pytest -n 2 --dist loadfile -m "not slow" tests/keras3
	KERAS_BACKEND=torch $(TORCH_VENV)/bin/python -m pytest -m slow -k pytorch tests/system/keras_examples_test.py
	TORCH_PYTHON=$(TORCH_VENV)/bin/python $(BIN)/python -m pytest tests/keras3/backends_test.py -k torch

$(TORCH_STAMP): $(TORCH_LIST)
	rm -rf $(TORCH_VENV)
	$(PYTHON) -m venv $(TORCH_VENV)
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $(TORCH_LIST)
	$(TORCH_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

# Clients of serve.py with many packages, in an environment of their own; the server is this one.
CLIENTS_VENV := .venv-clients
CLIENTS_LIST := tests/serving/clients_requirements.txt
CLIENTS_STAMP := $(CLIENTS_VENV)/.installed-$(PYTHON_VERSION)-$(shell cksum < $(CLIENTS_LIST) | cut -d' ' -f1)

test-clients: $(STAMP) $(CLIENTS_STAMP)  ## LangChain and LlamaIndex query serve.py
	CLIENTS_PYTHON=$(CLIENTS_VENV)/bin/python $(BIN)/python -m pytest tests/serving/more_clients_test.py

$(CLIENTS_STAMP): $(CLIENTS_LIST)
	rm -rf $(CLIENTS_VENV)
	$(PYTHON) -m venv $(CLIENTS_VENV)
	$(CLIENTS_VENV)/bin/python -m pip install --quiet --disable-pip-version-check -r $(CLIENTS_LIST)
	touch $@

# On a machine with a GPU, after `.venv/bin/python -m pip install -e ".[gpu]"`; beside transformers after
# `make bench-setup` and a build of torch for CUDA. make check-gpu [CHECK_FLAGS=--only=goldens,mirrored]
check-gpu: $(STAMP)  ## check everything on this machine's GPU, one table; without one, itself
	$(BIN)/python -m tools.check_gpu $(CHECK_FLAGS)

# Known vulnerabilities of the locked packages; needs a service that answers.
audit: .venv-audit/bin/pip-audit  ## known vulnerabilities of the locked packages (network)
	.venv-audit/bin/pip-audit --strict --require-hashes --disable-pip -r requirements.lock

.venv-audit/bin/pip-audit:
	$(PYTHON) -m venv .venv-audit
	.venv-audit/bin/python -m pip install --quiet --disable-pip-version-check pip-audit==2.10.1

# All pages anew: Sphinx repeats no warning of a page that it keeps, and a removed page would stay.
# -W with --keep-going: every broken link, reference and unlisted page is named, and then it fails.
SITE := build/site
docs: $(STAMP)  ## the documentation as a site in build/site; a broken link ends it
	rm -rf $(SITE) $(SITE).doctrees
	$(BIN)/python -m sphinx --quiet -W --keep-going -b html -c docs -d $(SITE).doctrees . $(SITE)

# What others offer, in an environment of its own: several GB.
bench-setup:  ## the environment of the systems that benchmarks compare with (network)
	$(PYTHON) -m venv .bench-venv
	.bench-venv/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/peers.txt

# make bench WEIGHTS=uncased_L-12_H-768_A-12 MRPC=glue/MRPC CORPUS=wiki.txt [BENCH_FLAGS=--only=help_time]
bench: $(STAMP)  ## all benchmarks; see the Makefile for its variables
	$(BIN)/python benchmarks/all.py --weights=$(WEIGHTS) --mrpc=$(MRPC) --corpus=$(CORPUS) $(BENCH_FLAGS)

# make conformance [SUITES=clones WEIGHTS=minilm_L-6_H-384_A-12 CONFORMANCE_FLAGS=--only=tensorflow_text]
conformance: $(STAMP)  ## run others' test suites against this project; lists what to clone
	$(BIN)/python -m conformance "--suites=$(SUITES)" "--weights=$(WEIGHTS)" $(CONFORMANCE_FLAGS)

format: $(STAMP)  ## correct what ruff can correct
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Needs uv; writes one lock for all supported Pythons.
lock:  ## write requirements.lock anew from pyproject.toml (needs uv, network)
	uv pip compile --universal --python-version 3.10 --generate-hashes --extra dev \
	  --no-header --no-annotate -o requirements.lock pyproject.toml

# Both distributions are installed in editable mode: a path and a command each, no copies.
$(STAMP): requirements.lock
	@case "$(PYTHON_VERSION)" in 3.10|3.11|3.12|3.13) ;; \
	  *) echo "Python 3.10 to 3.13 is needed, but '$(PYTHON)' is '$(PYTHON_VERSION)'."; \
	     echo "Name another one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1;; esac
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --use-pep517 -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation --editable . --editable ./tf1
	touch $(STAMP)

clean:  ## remove environments and caches
	rm -rf $(VENV) .torch-venv .venv-clients .bench-venv .venv-audit .pytest_cache .ruff_cache .mypy_cache .hypothesis output build/site*
