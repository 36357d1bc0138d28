PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed

.PHONY: demo test check bench-core bench-gpu format

demo: $(READY)  ## two minutes of training OFC, and the agent before and after
	rm -rf runs/demo-before runs/demo
	$(BIN)/ludus train ofc --preset quick --decisions 1 --ppo.learning-rate 0 --run runs/demo-before
	$(BIN)/ludus train ofc --preset quick --run runs/demo
	$(BIN)/ludus eval runs/demo-before --against random --hands 2000
	$(BIN)/ludus eval runs/demo --against random greedy --hands 2000

test: $(READY)  ## the whole suite
	$(BIN)/pytest -n 2

check: $(READY)  ## lint, types and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) test

bench-core: $(READY)  ## the speed of what training stands on
	$(BIN)/python bench/core.py

bench-gpu: $(READY)  ## training on a GPU
	$(BIN)/python bench/gpu.py

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(READY)
