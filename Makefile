# The same commands at the desk and in CI. `make demo` and `make test` are all a newcomer needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed
TOOLS := build/tools
# Compiled files are kept, whatever the environment says: each of the many processes of the tests would compile anew.
export PYTHONDONTWRITEBYTECODE =
# Two processes of one thread each fill two cores; more threads would only wait for each other.
TESTS := OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1 $(BIN)/python -m pytest -n 2 --dist worksteal

.PHONY: setup demo test fast check docs bench fuzz trust lock audit-dependencies sbom dist dist-test clean

setup: $(INSTALLED)

# First what has hashes, then torch, whose builds differ from machine to machine, and Beholder itself. Nothing is
# compiled: of 26,000 modules few are ever imported, and Python compiles those at their first import.
PIP_INSTALL := $(BIN)/python -m pip install -q --disable-pip-version-check --no-compile
$(INSTALLED): pyproject.toml constraints.txt requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP_INSTALL) --require-hashes --no-deps -r requirements.lock
	$(PIP_INSTALL) --no-build-isolation -c constraints.txt -e '.[torch,onnx,dev]'
	touch $@

demo: setup  ## audit the embedded reference models on the embedded world, offline, and name the report
	rm -f demo/results.parquet # a demo of another version may be made again
	HF_HUB_OFFLINE=1 $(BIN)/beholder audit --out demo --store demo/store

test: setup  ## everything, the real photographs of ../shared included when they are there
	$(TESTS)

fast: setup  ## the quick part, about a minute
	$(TESTS) -m "not slow and not real"

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

bench: setup  ## every claim about speed; writes speed/RESULTS.md
	$(BIN)/python speed/run.py

trust: setup  ## the long form of the fault matrix, corruptions, kills and fuzzing, and the tests of security; hours
	FAULT_CASES=720 FAULT_KILLS=500 OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/faults
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/models/served/test_secrets.py tests/core/test_paths.py \
		tests/core/test_written_tables.py tests/test_trust.py tests/test_payloads.py tests/test_reproducible.py \
		tests/test_strangers.py
	$(BIN)/python tests/fuzz/fuzz.py --cases 1000000

$(TOOLS)/bin/uv:
	$(PYTHON) -m venv $(TOOLS)
	$(TOOLS)/bin/pip install -q --disable-pip-version-check uv pip-audit cyclonedx-bom

lock: $(TOOLS)/bin/uv  ## requirements.lock anew: every dependency of pyproject.toml with its hashes, but for torch
	printf 'hatchling\neditables\n' | $(TOOLS)/bin/uv pip compile -q --generate-hashes --no-header --no-annotate \
		--no-emit-index-url --no-emit-find-links $(addprefix --find-links ,$(PIP_FIND_LINKS)) --python-version 3.11.7 \
		--extra torch --extra onnx --extra dev -c constraints.txt --no-emit-package torch pyproject.toml - \
		-o requirements.lock

audit-dependencies: $(TOOLS)/bin/uv  ## known vulnerabilities of what is locked; fails where the database has no answer
	$(TOOLS)/bin/pip-audit --strict --disable-pip --require-hashes -r requirements.lock --progress-spinner off

sbom: $(TOOLS)/bin/uv  ## what Beholder is installed with, as CycloneDX: build/sbom.json
	$(TOOLS)/bin/cyclonedx-py requirements requirements.lock --of JSON -o build/sbom.json

dist: $(INSTALLED) $(TOOLS)/bin/uv  ## wheel and sdist in build/dist, checked as an index would
	$(TOOLS)/bin/pip install -q --disable-pip-version-check build twine hatchling editables
	rm -rf build/dist
	$(TOOLS)/bin/python -m build -q --no-isolation --outdir build/dist
	$(TOOLS)/bin/twine check --strict build/dist/*

dist-test: dist  ## the wheel in an empty environment runs the demo from an empty folder
	rm -rf build/empty && $(PYTHON) -m venv build/empty/venv && mkdir build/empty/here
	build/empty/venv/bin/pip install -q --disable-pip-version-check -c constraints.txt "$$(ls build/dist/*.whl)[torch]"
	cd build/empty/here && HF_HUB_OFFLINE=1 ../venv/bin/beholder audit --limit 20 --draws 100 --out demo --store store
	cd build/empty/here && ../venv/bin/beholder report demo -q && test -s demo/report.html

fuzz: setup  ## damaged files against every reader; CASES=1000000 for the long run
	OMP_NUM_THREADS=1 POLARS_MAX_THREADS=1 HF_HUB_OFFLINE=1 $(BIN)/python tests/fuzz/fuzz.py --cases $(or $(CASES),20000)

clean:
	rm -rf $(VENV) demo build .pytest_cache .mypy_cache .ruff_cache
