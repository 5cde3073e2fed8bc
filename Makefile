# Needs python3.11 (or later), pip and make. Everything else is installed into .venv on first use.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BENCH := .venv-bench
FRAMEWORKS := .venv-frameworks
PINNED := .venv-pinned
BROWSER := .venv-browser
WHEEL := .venv-wheel
WHEEL_TESTS ?= tests/accounting tests/cli tests/docs tests/mechanisms tests/training tests/web $(wildcard tests/test_*.py)
BIN := $(VENV)/bin
SEED ?= 1
PIP_FLAGS := --quiet --disable-pip-version-check

# Compiled tests are kept: without them every process of a test compiles the library anew, 1.0 of 1.7 s of a question.
unexport PYTHONDONTWRITEBYTECODE

# One process more than there are cores: some tests wait for servers and for processes of their own.
WORKERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)

# Every core has a test to run; a second thread of a matrix product would only wait for a core.
export OPENBLAS_NUM_THREADS ?= 1

# Arrays of grids are freed and taken again: keeping their memory, in large pages, saves a quarter of such a test.
export GLIBC_TUNABLES ?= glibc.malloc.trim_threshold=268435456:glibc.malloc.mmap_threshold=1073741824:glibc.malloc.hugetlb=1

DPSGD := Gaussian(noise_multiplier=1.1, clip=1, relation='add-remove') @ Poisson(rate=1%) * 1000
PAPER := Gaussian(sigma=5) @ WithoutReplacement(rate=0.001) * 600000
WORLD := torch==2.13.0 opacus==1.6.0 dp-accounting==0.6.0 'scikit-learn>=1.4' matplotlib
WORLD += jax==0.10.2 optax==0.2.8 jax-privacy==2.0.0 lightning==2.6.6 accelerate==1.15.0 transformers==5.22.2
PEERS := dp-accounting==0.6.0 autodp==0.2.3.1 prv-accountant==0.2.0

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run paper test test-fast test-times test-frameworks test-browser test-wheel build docs lint format bench hunt hunt-long clean hunt-ledger bench-ledger test-postgres proofs proofs-check

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.installed ## A DP-SGD run: 1,000 steps, noise multiplier 1.1, Poisson batches of 1 %, delta 1e-6
	@$(BIN)/cumulant epsilon "$(DPSGD)" --delta 1e-6

paper: $(VENV)/.installed ## The paper's run: 600,000 rounds of a subsampled Gaussian query of sensitivity 1, delta 1e-8
	@$(BIN)/cumulant epsilon "$(PAPER)" --delta 1e-8

test: $(VENV)/.installed ## All tests and doctests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
	@$(MAKE) --no-print-directory test-frameworks

test-fast: $(VENV)/.installed ## The fast tests, without doctests: four of ten
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal -m "not slow" tests -o addopts="--hypothesis-profile=ci \
		--import-mode=importlib --strict-markers --ignore=tests/integrations --ignore=tests/pinned --ignore=tests/web/browser"

test-times: $(VENV)/.installed ## Measure every test by processor time and list the slow ones in tests/slow.txt
	rm -rf build/times && mkdir -p build/times
	CUMULANT_TIMES=build/times $(BIN)/python -m pytest -q -n $(WORKERS) --dist worksteal
	$(BIN)/python -m tests.slow build/times

# In a call of its own: collecting doctests imports every file, and warnings of frameworks are not errors of ours.
test-frameworks: $(FRAMEWORKS)/.installed $(PINNED)/.installed ## Tests with the real torch, Opacus, Lightning, transformers, JAX and dp-accounting (the first time a gigabyte)
	$(PINNED)/bin/python -m pytest -o addopts="--import-mode=importlib --strict-markers -ra" tests/pinned
	$(FRAMEWORKS)/bin/python -m pytest -o addopts="--doctest-modules --import-mode=importlib --strict-markers -ra" \
		-o filterwarnings=default src/cumulant/integrations tests/integrations

test-browser: $(BROWSER)/.installed ## The page in a real Chromium (apt-get install chromium chromium-driver)
	$(BROWSER)/bin/python -m pytest -o addopts="--import-mode=importlib --strict-markers -ra" -o filterwarnings=default \
		tests/web/browser

build: $(WHEEL)/.installed ## The wheel and the source distribution, in build/dist
	rm -rf build/dist
	$(WHEEL)/bin/python -m build --outdir build/dist .

# Outside of the tree, with the tests of the source distribution and the wheel alone; tests marked `tree` read the code itself.
test-wheel: build ## Tests against the installed wheel: make test-wheel [WHEEL_TESTS=tests]
	$(WHEEL)/bin/python -m pip install $(PIP_FLAGS) --force-reinstall --no-deps build/dist/*.whl
	outside=$$(mktemp -d) && tar -xzf build/dist/*.tar.gz -C "$$outside" --strip-components 1 && rm -r "$$outside/src" && \
	here=$$PWD && cd "$$outside" && "$$here/$(WHEEL)/bin/cumulant" --version && \
	"$$here/$(WHEEL)/bin/python" -c 'import cumulant; assert "site-packages" in cumulant.__file__, cumulant.__file__' && \
	"$$here/$(WHEEL)/bin/python" -m pytest -n $(WORKERS) --dist worksteal -m "not tree" $(WHEEL_TESTS) && rm -r "$$outside"

docs: $(VENV)/.installed ## The documentation as a site in build/site; every warning is an error
	$(BIN)/python -m sphinx --fail-on-warning --keep-going -q -c docs -b html . build/site

lint: $(VENV)/.installed ## Style, format, types, layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(VENV)/.installed ## Format the code, sort the imports
	$(BIN)/ruff check --select I --fix
	$(BIN)/ruff format

bench: $(BENCH)/.installed ## Side by side with dp-accounting, autodp and Opacus, in an environment of its own
	$(BENCH)/bin/python benchmarks/compare.py

hunt: $(VENV)/.installed ## Attack combinators of combinators, samples of samples and the whole notation: 20 minutes on two cores
	$(BIN)/python -m benchmarks.hunt_combinators --instances 10000 --seed $(SEED) --minutes 10
	$(BIN)/python -m benchmarks.hunt_notation --first $(SEED)000000 --minutes 7
	$(BIN)/python -m benchmarks.hunt_allocation 1000 $(SEED)

hunt-long: $(VENV)/.installed ## The same, and the certificates, the line and Theorems A, C, P, V and W: three hours on two cores; then the ledger
	$(BIN)/python -m benchmarks.hunt_combinators --instances 10000 --seed $(SEED)
	$(BIN)/python -m benchmarks.hunt_notation --expressions 20000 --first $(SEED)000000
	$(BIN)/python -m benchmarks.hunt_allocation 1000 $(SEED)
	$(BIN)/python -m benchmarks.hunt_certificates --settings 100000 --seed $(SEED)
	$(BIN)/python -m benchmarks.hunt_questions --questions 1000 --seed $(SEED)
	CUMULANT_EFFORT=5 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal --hypothesis-profile=default \
		tests/laws $$(grep -rlE "import effort|tests.effort" tests --include "test_*.py")
	$(BIN)/python benchmarks/hunt_triangles.py 2800 $(SEED)
	$(BIN)/python -m benchmarks.hunt_line --settings 5000 --seed $(SEED)
	$(BIN)/python -m benchmarks.hunt_triples 10000 $(SEED)
	$(MAKE) --no-print-directory hunt-ledger

hunt-ledger: $(VENV)/.installed ## Kill writers and servers of the ledger for 30 minutes, look for analysts who beat it
	$(BIN)/python -m tests.ledger.adversary --menus 20000 --seed 1
	$(BIN)/python -m tests.ledger.kill --seconds 600 --writers 8 --url sqlite
	$(BIN)/python -m tests.ledger.kill --seconds 600 --writers 8 --url postgresql
	$(BIN)/python -m tests.ledger.kill --seconds 600 --writers 8 --url postgresql --crash-server
	CUMULANT_EVERY_BYTE=1 $(BIN)/python -m pytest -q tests/ledger/test_tamper.py
	$(BIN)/python -m tests.ledger.forgery --mutants 10000 --seed 1
	$(BIN)/python -m tests.ledger.disturbance --seconds 300 --writers 8 --removals 50
	CUMULANT_ROUNDS=50 $(BIN)/python -m pytest -q tests/laws/test_shared_objects.py

bench-ledger: $(VENV)/.installed ## What a spend costs, in SQLite and in PostgreSQL, as parts of what the disk can do
	$(BIN)/python -m benchmarks.ledger --url sqlite
	$(BIN)/python -m benchmarks.ledger --url postgresql
	$(BIN)/python -m benchmarks.ledger_growth --url sqlite
	$(BIN)/python -m benchmarks.ledger_growth --url postgresql

test-postgres: $(VENV)/.installed ## The tests of the ledger alone, against the PostgreSQL that is found (make test runs them too)
	$(BIN)/python -m pytest -n $(WORKERS) src/cumulant/ledger tests/ledger tests/cli/test_ledger.py

# What Coq checks needs Debian's packages, not pip, so it is not part of make test.
proofs: ## Theorem 9 and the ledger's rule, checked by Coq (apt-get install coq libcoq-mathcomp-analysis)
	proofs/check

proofs-check: ## The same with coqchk, and changed statements that must not compile: about 10 minutes
	proofs/check --mutants
	cd proofs && coqchk -silent -o -Q . Cumulant Cumulant.instances Cumulant.lemma3 Cumulant.proposition11 Cumulant.ledger_rule Cumulant.composition Cumulant.chords Cumulant.conversion

clean: ## Remove environments, caches and builds
	rm -rf $(VENV) $(BENCH) $(FRAMEWORKS) $(PINNED) $(BROWSER) $(WHEEL) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamp is written last, so an interrupted install is repeated.
$(VENV)/.installed: pyproject.toml
	$(call environment,$(VENV))
	@$(VENV)/bin/python -m pip install $(PIP_FLAGS) --editable '.[dev]'
	@touch $@

$(FRAMEWORKS)/.installed: pyproject.toml Makefile
	$(call environment,$(FRAMEWORKS))
	@$(FRAMEWORKS)/bin/python -m pip install $(PIP_FLAGS) --editable . $(WORLD) 'pytest>=8.2'
	@touch $@

# Peers that pin other versions than the rest: TensorFlow Privacy 0.9.0 takes dp-accounting 0.4.3.
$(PINNED)/.installed: pyproject.toml Makefile
	$(call environment,$(PINNED))
	@$(PINNED)/bin/python -m pip install $(PIP_FLAGS) --editable . dp-accounting==0.4.3 'pytest>=8.2'
	@touch $@

$(BROWSER)/.installed: pyproject.toml Makefile
	$(call environment,$(BROWSER))
	@$(BROWSER)/bin/python -m pip install $(PIP_FLAGS) --editable '.[web]' selenium axe-selenium-python 'pytest>=8.2'
	@touch $@

# What tests need, and not the code.
$(WHEEL)/.installed: pyproject.toml Makefile
	$(call environment,$(WHEEL))
	@$(WHEEL)/bin/python -m pip install $(PIP_FLAGS) build '.[dev]'
	@$(WHEEL)/bin/python -m pip uninstall $(PIP_FLAGS) --yes cumulant
	@touch $@

$(BENCH)/.installed: pyproject.toml Makefile
	$(call environment,$(BENCH))
	@$(BENCH)/bin/python -m pip install $(PIP_FLAGS) --editable . $(PEERS) torch==2.13.0
	@$(BENCH)/bin/python -m pip install $(PIP_FLAGS) --no-deps opacus==1.6.0 opt-einsum  # only its formulas are used
	@touch $@

# Some systems ship venv without ensurepip; there the outer pip installs the inner one.
define environment
@test -n "$(PYTHON)" || { echo "no python3 found; name one: make PYTHON=/path/to/python3.11" >&2; exit 1; }
@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	{ echo "$(PYTHON) is older than Python 3.11; name another: make PYTHON=/path/to/python3.11" >&2; exit 1; }
@echo "Setting up $(1) (once; takes a minute) ..." >&2
@if "$(PYTHON)" -c 'import ensurepip' 2>/dev/null; then "$(PYTHON)" -m venv $(1); else \
	"$(PYTHON)" -m venv --without-pip $(1) && \
	"$(PYTHON)" -m pip --python $(1)/bin/python install $(PIP_FLAGS) pip; fi
endef
