# `make demo` and `make test` need nothing but Python 3.11, pip, git, g++ and cmake.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/pip --disable-pip-version-check --quiet

.PHONY: demo test test-fast docs opinfo check format wheel-check clean

$(VENV)/installed: setup.py pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e ".[torch]"
	touch $@

$(VENV)/installed-test: $(VENV)/installed
	$(PIP) install -c constraints.txt -e ".[torch,dev]"
	touch $@

demo: $(VENV)/installed  ## Tune one operator on the virtual NPU; record and report go to demo-output/.
	$(BIN)/python examples/demo.py

test: $(VENV)/installed-test  ## All tests.
	$(BIN)/python -m pytest -n 2 tests

test-fast: $(VENV)/installed-test  ## What needs no compiler and no torch; under a minute.
	$(BIN)/python -m pytest -n 2 tests/unit

opinfo: $(VENV)/installed-test  ## torch's operators on device npu against the CPU, all samples; minutes.
	mkdir -p build
	$(BIN)/python tests/torch/opinfo.py --json build/opinfo.json

check: $(VENV)/installed-test  ## Lint, format and types, Python and C++.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	git ls-files 'ascendopt_tune/vnpu/*.h' 'ascendopt_tune/vnpu/*.cpp' | xargs $(BIN)/clang-format --dry-run --Werror

bench-vnpu: $(VENV)/installed  ## How fast the virtual NPU is, as ratios; a few minutes, best on an idle machine.
	$(BIN)/python benchmarks/vnpu.py

docs: $(VENV)/installed-test  ## Regenerate the table of APIs; tests compare it.
	$(BIN)/python docs/api_table.py

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	git ls-files 'ascendopt_tune/vnpu/*.h' 'ascendopt_tune/vnpu/*.cpp' | xargs $(BIN)/clang-format -i

wheel-check: $(VENV)/installed-test  ## Build the wheel, install it outside the tree, tune with it.
	$(BIN)/python tests/wheel_check.py

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output
