# The same commands at the desk and in CI. `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: setup demo test fast check docs bench clean

setup: $(INSTALLED)

$(INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[torch,onnx,dev]'
	touch $@

demo: setup  ## audit the embedded reference models on the embedded world, offline, and name the report
	HF_HUB_OFFLINE=1 $(BIN)/beholder audit --out demo --store demo/store

test: setup  ## everything, the real photographs of ../shared included when they are there
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile

fast: setup  ## the quick part, one to two minutes
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not real"

check: setup  ## ruff, strict mypy, and the direction of imports
	$(BIN)/ruff check src tests speed tools
	$(BIN)/ruff format --check src tests speed tools
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: setup  ## check every link, command and example of the docs, and build the docs site into build/docs
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/test_docs.py tests/test_docs_examples.py tests/test_docs_site.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q --strict
	$(BIN)/beholder site --out build/docs/published --title "What five studies published"
	@echo "build/docs/index.html, and the published tables: build/docs/published/index.html"

bench: setup  ## speed, as ratios in one run
	$(BIN)/python speed/run.py

clean:
	rm -rf $(VENV) demo build .pytest_cache .mypy_cache .ruff_cache
