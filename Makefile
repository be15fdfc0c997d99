PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test slow check tables docs

demo: .venv/installed
	$(BIN)/comes demo

test: .venv/installed
	$(BIN)/pytest --numprocesses auto --dist worksteal $(if $(ROOM),src/comes/$(ROOM)* $(wildcard tests/test_$(ROOM)*.py))

slow: .venv/installed
	$(BIN)/pytest -m slow tests

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python docs/fill.py --check

tables: .venv/installed
	$(BIN)/python docs/fill.py

docs: .venv/installed
	$(BIN)/python docs/build_site.py

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	$(BIN)/python -m compileall -qq -j 0 .venv/lib || true  # pip would do it on one core
	touch $@
