# Each target makes its own environment in .venv; a fresh machine needs Python 3.11 or later and make.
# Another interpreter: make test PYTHON=/path/to/python3

VENV    := .venv
BIN     := $(VENV)/bin
STAMP   := $(VENV)/.stamp-dev
DOCS    := $(VENV)/.stamp-docs
TORCH   := $(VENV)/.stamp-torch
WORKERS ?= 2

# A name on PATH may be a shim for a version that is not there, so every candidate has to run.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3.14 python3 python; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo "$$p"; break; }; done)

.PHONY: help quick test api gpu demo lint types contracts unit bench docs coverage-of-requirements files-slow fuzz stress clean
.DEFAULT_GOAL := help

help:
	@echo "make quick   lint, import contracts and the tests that fail first, in under two minutes"
	@echo "make test    lint, types, import contracts and tests"
	@echo "make demo    the bundled humanoid stands, is pushed and falls; writes build/demo/demo.html and .png"
	@echo "make bench   the benchmark tables, beside Pinocchio and MuJoCo"
	@echo "make docs    the documentation, into docs/_build/html"
	@echo "make coverage-of-requirements   which tests prove which requirement; writes docs/requirements.md"
	@echo "make files-slow   model files of more packages, against the engines they were written for"
	@echo "make fuzz    damaged model files for ten minutes (SECONDS=… for longer)"
	@echo "make stress  interrupts, forks, threads, captured values, soak and random scenes, some minutes each"
	@echo "make api     write the public names and signatures into tests/public_api.txt, after a change on purpose"
	@echo "make gpu     the tests that need an NVIDIA GPU"
	@echo "make clean   remove everything the other targets made"

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or later with the venv module on PATH;" \
	  "install one or run: make PYTHON=/path/to/python3"; exit 1; }
	"$(PYTHON)" -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(DOCS): pyproject.toml $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev,docs]'
	@touch $@

# The usual wheel of PyTorch for Linux brings gigabytes of CUDA libraries; its tests need the build for CPUs alone.
PYTORCH ?= torch==2.13.0$(if $(filter Linux,$(shell uname -s)),+cpu)

$(TORCH): $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --retries 0 --timeout 20 \
	  --extra-index-url https://download.pytorch.org/whl/cpu '$(PYTORCH)' && touch $@ \
	  || echo "no $(PYTORCH) for this machine: the tests of PyTorch will be skipped"

test: lint types contracts unit

# Each run compiles into an empty kernel cache; tests/conftest.py sees to it.
quick: lint contracts
	$(BIN)/python -m pytest -n $(WORKERS) @tests/quick.txt

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(STAMP)
	$(BIN)/mypy --strict src
	$(BIN)/mypy --strict requirements/coverage.py

contracts: $(STAMP)
	$(BIN)/lint-imports

unit: $(STAMP) $(TORCH)
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal

api: $(STAMP)
	$(BIN)/python tests/public_api.py --update

gpu: $(STAMP)
	$(BIN)/python -m pytest tests/cuda tests/codegen/gpu

demo: $(STAMP)
	$(BIN)/python examples/demo.py

bench: $(STAMP)
	@status=0; for table in speed counts compile_time large loops derivatives inverse_kinematics transition rollouts simulation physics contact_found; do \
	  $(BIN)/python benchmarks/$$table.py || status=1; echo; done; exit $$status

docs: $(DOCS)
	$(BIN)/python -m sphinx -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

coverage-of-requirements: $(STAMP)
	$(BIN)/python requirements/coverage.py

files-slow: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --only-binary :all: \
	  --target $(VENV)/files pybullet robosuite gymnasium-robotics mujoco-mjx mujoco-warp brax
	PYTHONPATH=$(VENV)/files $(BIN)/python benchmarks/files.py --slow

fuzz: $(STAMP)
	$(BIN)/python benchmarks/fuzz_files.py --seconds $(or $(SECONDS),600)

stress: $(STAMP)
	DALEMBERT_STRESS=1 $(BIN)/python -m pytest tests/stress --timeout 3600

clean:
	rm -rf $(VENV) build dist docs/_build docs/gallery docs/jupyter_execute docs/sg_execution_times.rst \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples requirements -name __pycache__ -type d -prune -exec rm -rf {} +
