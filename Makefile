PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed

.PHONY: demo test check bench-core format

demo: $(READY)  ## a tournament between the OFC bots
	$(BIN)/ludus eval ofc --bots rollout greedy random --hands 2000

test: $(READY)  ## the whole suite
	$(BIN)/pytest -n 2

check: $(READY)  ## lint, types and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test

bench-core: $(READY)  ## the speed of what training stands on
	$(BIN)/python bench/core.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(READY)
