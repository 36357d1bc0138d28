PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed

.PHONY: demo test test-elsewhere check bench-core bench-train bench-runs bench-pokemon bench-retro bench-ray bench-gpu bench-blokus bench-strength bench-web docs format

demo: $(READY)  ## two minutes of training OFC, and the agent before and after
	rm -rf runs/demo-before runs/demo
	$(BIN)/ludus train ofc --preset quick --decisions 1 --ppo.learning-rate 0 --run runs/demo-before
	$(BIN)/ludus train ofc --preset quick --run runs/demo
	$(BIN)/ludus eval runs/demo-before --against random --hands 2000
	$(BIN)/ludus eval runs/demo --against random greedy --hands 2000

test: $(READY)  ## the whole suite
	$(BIN)/pytest -n 2 --dist loadfile  # what tests of a file share is made once

test-elsewhere: $(READY)  ## the suite as on another CPU, and in another order: SEED=7
	NUMBA_CPU_NAME=generic NPY_DISABLE_CPU_FEATURES="$$($(BIN)/python -c "$(SIMD)")" \
		$(BIN)/pytest -n 2 --dist loadfile --random-order-bucket=module --random-order-seed=$(or $(SEED),1)

SIMD := import numpy; print(*numpy.show_config(mode='dicts')['SIMD Extensions']['found'])

check: $(READY)  ## format, lint, types, documentation and tests
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(MAKE) docs
	$(MAKE) test

bench-core: $(READY)  ## the speed of what training stands on
	$(BIN)/python bench/core.py

bench-train: $(READY) .venv-rivals  ## the speed and success of training, beside other libraries
	$(BIN)/python bench/train.py

bench-runs: $(READY)  ## what it costs that runs can be trusted; thirteen minutes
	$(BIN)/python bench/runs.py

bench-blokus: $(READY)  ## Blokus, search and self-play; eight minutes
	$(BIN)/python bench/blokus.py

bench-strength: $(READY)  ## how strong the committed agents are; an hour, less with ARGS="ofc --hands 600"
	$(BIN)/python bench/strength.py $(ARGS)

bench-pokemon: $(READY)  ## battles beside poke-env
	$(BIN)/ludus pokemon setup
	$(BIN)/python bench/pokemon.py

bench-retro: $(READY)  ## console games beside other libraries; six minutes
	-$(BIN)/pip install -q --no-deps --target .turbo stable-retro-turbo
	$(BIN)/python bench/retro.py

bench-web: $(READY)  ## what the web page costs a training, and how fast it is; five minutes
	$(BIN)/python bench/web.py

bench-ray: $(READY)  ## Ray beside worker processes, and sweeps; six minutes
	$(BIN)/python bench/cluster.py

bench-gpu: $(READY)  ## what only a GPU can show to be right, then the speed of training there
	$(BIN)/python bench/gpu_check.py
	$(BIN)/python bench/gpu.py

docs: $(READY)  ## the documentation as a site, in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(READY)

# They want another NumPy and Gymnasium than ours. PufferLib 3.0.0 can't be installed by pip alone (its build
# fails); if it is put here, it is measured too.
.venv-rivals:
	$(PYTHON) -m venv .venv-rivals
	.venv-rivals/bin/python -m pip install --quiet torch==2.13.0 'numpy<2' setuptools wheel sample-factory==2.1.1
