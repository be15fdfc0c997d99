PYTHON ?= python3
BIN := .venv/bin
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal
unexport PYTHONDONTWRITEBYTECODE  # each process would compile all that it imports again

.PHONY: demo test test-all smoke check goldens tables docs

demo: .venv/installed
	$(BIN)/comes demo

test: .venv/installed  # what a change must pass: about four minutes on two cores
	$(PYTEST) -m 'not long' $(if $(PACKAGE),$(wildcard tests/test_$(PACKAGE)*.py),--ignore tests/system)

test-all: .venv/installed  # and browsers, databases, clusters, processes, the site, the wheel, doctests
	$(PYTEST) --doctest-modules tests src

smoke: .venv/installed  # one test of each real component, as CI runs them after make test
	$(PYTEST) -m smoke tests/system

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/fill.py --check

goldens: .venv/installed  # writes a set again: make goldens GOLDENS=fixed
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m goldens $(GOLDENS)

tables: .venv/installed
	$(BIN)/python docs/fill.py

docs: .venv/installed
	$(BIN)/python docs/build_site.py

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	touch $@
