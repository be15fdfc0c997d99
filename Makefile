PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check

demo: .venv/installed
	$(BIN)/comes demo

test: .venv/installed
	$(BIN)/pytest

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.venv/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --constraint constraints.txt --editable '.[dev]'
	touch $@
