# make quickstart   environment without torch, features of the digits, a first table and figure
# make test         environment with everything, then lint, types and the fast tests
# make lint         ruff and mypy alone
# make test-slow    the tests that `make test` leaves out, save those that need a GPU or outside data
# make test-postgres  the ledger on a PostgreSQL server that the tests start (Debian: apt install postgresql)
# make test-browser  the report and the site in Chromium (Debian: apt install chromium), of which nothing is downloaded
# make test-repeat  the tests that kill fits and load the ledger, twenty times in a row
# make test-shapes  the tests again, with every array shape checked while running
# make docs         the site, in site/, without network; runs the gallery; fails on a warning or a dead link
# make screenshots  the pictures of terminal and report in docs/screenshots (Chromium, as above)
# make gpu          what an accelerator does, in ten minutes; installs nothing (PYTHON=... to choose one).
#                   With IMAGES=... WEIGHTS=... also frozen groups by batch and epochs, for days; FROZEN='--epochs 10' for fewer
# make coverage     the tests of the audited files, which must reach every branch of them (PostgreSQL's if it is installed)
# make mutation     change privfeat/core bit by bit: a test must fail each time (hours)
# make clean        remove what these targets made, the environment included

VENV := .venv
BIN := $(VENV)/bin
# Give PYTHON=... to choose another interpreter for the environment.
PYTHONS := $(if $(PYTHON),$(PYTHON),python3 python python3.13 python3.12 python3.11)
PYTEST_WORKERS ?= 2
PIP_INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -c constraints.txt

BASE_STAMP := $(VENV)/.stamp-quickstart
BROWSER_STAMP := $(VENV)/.stamp-browser
FULL_STAMP := $(VENV)/.stamp-test
REQUIREMENTS := pyproject.toml constraints.txt privfeat/_version.py

# Tests start many processes. Each would compile the package again if it kept no code.
unexport PYTHONDONTWRITEBYTECODE

PYTEST := HYPOTHESIS_PROFILE=ci $(BIN)/python -m pytest
NOT_HERE := not gpu and not realdata and not postgres and not browser
FAST := not slow and not more

.DELETE_ON_ERROR:
.PHONY: quickstart test lint test-slow test-postgres test-browser test-repeat test-shapes docs screenshots gpu coverage mutation results-quick clean

quickstart: quickstart/digits.h5
	$(BIN)/privfeat quickstart quickstart/digits.h5 --out quickstart/

quickstart/digits.h5: $(BASE_STAMP)
	@mkdir -p $(@D)
	@rm -f $@
	$(BIN)/privfeat-extract --data digits --model scattering --out $@

test: lint
	$(PYTEST) -q -n $(PYTEST_WORKERS) --dist worksteal -m "$(NOT_HERE) and $(FAST)"

lint: $(FULL_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test-slow: $(FULL_STAMP)
	$(PYTEST) -n $(PYTEST_WORKERS) --dist worksteal -m "$(NOT_HERE) and not ($(FAST))"

# -rs: what is skipped, and why
test-postgres: $(FULL_STAMP)
	$(PYTEST) -q -rs -m postgres tests

test-browser: $(BROWSER_STAMP)
	$(PYTEST) -q -rs -m browser tests/report tests/pages

# Processes meet in another order every time; TIMES=... for more.
TIMES ?= 20
test-repeat: $(FULL_STAMP)
	@for number in $$(seq $(TIMES)); do \
	  echo "$$number of $(TIMES)"; \
	  $(PYTEST) -q -m "$(NOT_HERE)" -k "kill or eight_processes" \
	    tests/core/ledger tests/linear/test_ledger.py || exit 1; \
	done

# Modules whose functions take arrays; beartype would refuse integers for floats elsewhere.
comma := ,
empty :=
SHAPED := $(addprefix privfeat.core.,bounds.clipping bounds.losses bounds.rows noise.draws $(addprefix sums.arithmetic.,kernels slices) sums.calls sums.records sums.statistics sums.trials) privfeat.solvers
SHAPED_LIST := $(subst $(empty) ,$(comma),$(strip $(SHAPED)))

test-shapes: $(FULL_STAMP)
	$(PYTEST) -q -n $(PYTEST_WORKERS) --dist worksteal -m "$(NOT_HERE) and $(FAST) and not validation" \
	  --jaxtyping-packages=$(SHAPED_LIST),beartype.beartype

docs: $(FULL_STAMP)
	NO_MKDOCS_2_WARNING=1 JAX_PLATFORMS=cpu $(BIN)/mkdocs build --strict  # with --quiet it would not count warnings

screenshots: $(BROWSER_STAMP)
	PYTHONPATH=. $(BIN)/python docs/screenshots.py

GPU_PYTHON = $(or $(PYTHON),$(wildcard $(BIN)/python),python3)
gpu:
	$(GPU_PYTHON) benchmarks/gpu.py --out benchmarks/results/gpu.json
ifdef IMAGES
	$(GPU_PYTHON) benchmarks/frozen.py $(IMAGES) --weights $(WEIGHTS) --out benchmarks/results/frozen.json $(FROZEN)
endif

# Every branch of the files that privfeat/core/README.md lists, slow tests of them included:
# those that start processes of their own hold branches that one process never sees.
AUDITED_TESTS := $(addprefix tests/,test_checks.py test_compilation.py test_progress.py pages test_warnings.py cli/test_predict.py cli/test_what_leaves.py core data estimation linear metrics networks persistence pipeline pitfalls preprocessing recalibration selection) privfeat/core
SERVER := ls /usr/lib/postgresql/*/bin/initdb || command -v initdb
coverage: $(FULL_STAMP)
	@marks="not gpu and not realdata and not browser"; left_out=nothing; \
	if ! { $(SERVER); } >/dev/null 2>&1; then \
	  marks="$(NOT_HERE)"; left_out="privfeat/core/ledger/stores/postgres_*.py"; \
	  echo "PostgreSQL is not installed: $$left_out is left out, and NOT covered."; \
	fi; \
	$(PYTEST) -q -n $(PYTEST_WORKERS) --dist worksteal -m "$$marks" --cov=privfeat --cov-branch --cov-report= $(AUDITED_TESTS) && \
	$(BIN)/coverage report --show-missing --skip-covered --fail-under=100 \
	  --include="$$($(BIN)/python -m tests.audited)" --omit="$$left_out"

# Give MODULES="noise.keys noise.draws" for some alone.
mutation: $(FULL_STAMP)
	$(PIP_INSTALL) -q -e '.[mutation]'
	$(BIN)/python tests/mutation.py $(MODULES)

# The measurements that take minutes: their JSON, and their tables in RESULTS.md.
RESULTS := benchmarks/results
results-quick: quickstart/digits.h5
	rm -f $(addprefix $(RESULTS)/,digits.json regression.json rare.json) # which would be continued
	$(BIN)/python benchmarks/accuracy.py quickstart/digits.h5 --repeats 20 --baseline --out $(RESULTS)/digits.json
	$(BIN)/python benchmarks/selection.py quickstart/digits.h5 --epsilons 0.5 2 8 --out $(RESULTS)/selection.json
	$(BIN)/python benchmarks/exact.py quickstart/digits.h5 --no-times --repeats 20 --out $(RESULTS)/exact.json
	$(BIN)/python benchmarks/regression.py --repeats 20 --out $(RESULTS)/regression.json
	$(BIN)/python benchmarks/rare.py --out $(RESULTS)/rare.json
	$(BIN)/python benchmarks/tan_figures.py --out $(RESULTS)/tan_figures.json
	$(BIN)/python benchmarks/table.py --rewrite

$(BASE_STAMP): $(REQUIREMENTS) | $(BIN)/python
	$(PIP_INSTALL) -q -e '.[quickstart]'
	@touch $@

# Holds all of the smaller environment, so that one is then fresh as well.
$(FULL_STAMP): $(REQUIREMENTS) | $(BIN)/python
	$(PIP_INSTALL) -q -e '.[quickstart,extract,text,plot,report,postgres,audit,train,onnx,safetensors,hub,docs,dev]'
	@touch $(BASE_STAMP) $@

$(BROWSER_STAMP): $(FULL_STAMP)
	$(PIP_INSTALL) -q -e '.[browser]'
	@touch $@

$(BIN)/python:
	@for python in $(PYTHONS); do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    echo "creating $(VENV) with $$python"; \
	    $$python -m venv $(VENV) && exit 0; \
	    rm -rf $(VENV); \
	    echo "error: '$$python -m venv' failed; on Debian and Ubuntu install python3-venv." >&2; \
	    exit 1; \
	  fi; \
	done; \
	echo "error: privfeat needs Python 3.11 or newer; tried: $(PYTHONS)." >&2; \
	echo "Install it, or name one: make PYTHON=/path/to/python3.11 ..." >&2; \
	exit 1

clean:
	rm -rf $(VENV) quickstart build site dist *.egg-info
	rm -rf .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
