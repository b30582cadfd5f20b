# `make demo` and `make test` need nothing but Python 3.11 to 3.13, pip, git, g++ and cmake.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Tests start hundreds of processes: each would compile the package's sources anew.
unexport PYTHONDONTWRITEBYTECODE
PIP := $(BIN)/pip --disable-pip-version-check --quiet

# One worker more than processors: a test waits now and then, for a compiler or a process that it has killed (two more
# were no faster). A file's tests run in one worker: what they share (compiled kernels, servers, torch) is made once.
# tests/conftest.py says which files come first.
WORKERS := $(shell expr $$(nproc) + 1)
PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

.PHONY: demo toolkits test test-all test-fast coverage docs opinfo hazard-battery gate-battery survival-battery fuzz-battery sanitize bench-vnpu \
	bench-dispatch bank calibrate-battery dsl-battery search-battery llm-battery mkb-battery ray-battery check format wheel-check clean site \
	first-hour examples changelog wheel-with-toolkit

# With bytecode, though a run imports a fifth of it: compiling torch_npu's sources warns, which is an error in tests.
$(VENV)/installed-core: setup.py pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) install -c constraints.txt -e .
	touch $@

$(VENV)/installed: $(VENV)/installed-core
	$(PIP) install -c constraints.txt -e ".[torch]"
	touch $@

$(VENV)/installed-test: $(VENV)/installed-core
	$(PIP) install -c constraints.txt -e ".[torch,dev]"
	touch $(VENV)/installed $@

demo: $(VENV)/installed  ## Tune one operator on the virtual NPU; record and report go to demo-output/.
	$(BIN)/python examples/demo.py

# By name rather than installed: pip may be about to install the package again.
BUILD_TOOLKIT := PYTHONPATH=. $(BIN)/python -c "from ascendopt_tune.build.toolkit import virtual; virtual()"
toolkits: $(VENV)/installed-core  ## The virtual NPU's toolkit, and the one with sanitizers: what tests would build at their first need.
	$(BUILD_TOOLKIT)
	ASCENDOPT_SANITIZE=1 $(BUILD_TOOLKIT)

test: $(VENV)/installed-test  ## The tests that every change has to pass.
	$(BIN)/python -m pytest $(PARALLEL) --durations=25 --durations-min=10 tests

test-all: $(VENV)/installed-test  ## Those, and what tests/slow.txt names.
	$(BIN)/python -m pytest $(PARALLEL) -m "not battery" --durations=25 --durations-min=10 tests

test-fast: $(VENV)/installed-test  ## What needs no compiler and no torch; under a minute.
	$(BIN)/python -m pytest $(PARALLEL) tests/unit

# Not in `make check`: traced by Python 3.11, these tests take three times the processor time.
coverage: $(VENV)/installed-test  ## Which lines test-fast runs, and a floor under their share; a quarter of an hour.
	$(BIN)/python -m pytest -q $(PARALLEL) tests/unit --cov=ascendopt_tune --cov-report=term:skip-covered

opinfo: $(VENV)/installed-test  ## torch's operators on device npu against the CPU, all samples; minutes.
	mkdir -p build
	$(BIN)/python tests/torch/opinfo.py --json build/opinfo.json

hazard-battery: $(VENV)/installed-test  ## Every synchronization of every verified kernel left out or moved, one at a time.
	$(BIN)/python -m pytest -m "battery or not battery" -q tests/vnpu/test_hazard_mutations.py tests/vnpu/test_cube_mutants.py

gate-battery: $(VENV)/installed-test  ## Wrong and right variants through the gate; of cann-ops too, with ASCENDOPT_CANN_OPS; an hour or two.
	$(BIN)/python -m pytest -m "battery or not battery" -q tests/gate/test_mutants.py tests/gate/test_wrong_by_hand.py tests/gate/test_gate_battery.py

survival-battery: $(VENV)/installed-test  ## 200 kills of tuner, server and workers, 200 interrupts, 80,000 cache operations; many minutes.
	$(BIN)/python -m pytest -m "battery or not battery" -q tests/survival tests/torch/test_lazy.py

fuzz-battery: $(VENV)/installed-test  ## 2,500 malformed files, archives and command lines; minutes.
	$(BIN)/python -m pytest -m "battery or not battery" -q tests/unit/test_malformed.py

calibrate-battery: $(VENV)/installed-test  ## 20 devices that the virtual NPU plays, calibrated; half an hour.
	$(BIN)/python -m pytest -m "battery or not battery" -q -s tests/calibrate/test_battery.py

dsl-battery: $(VENV)/installed-test  ## 300 random programs of the tile language, interpreted and lowered; half an hour.
	$(BIN)/python -m pytest -m "battery or not battery" -q -n 2 tests/dsl/test_dsl_random.py

search-battery: $(VENV)/installed-test  ## The default search on seven operators of the registry; minutes.
	$(BIN)/python -m pytest -m "battery or not battery" -q tests/e2e/test_stage1.py

llm-battery: $(VENV)/installed-test  ## Recorded tunings led by hand in a model's place, and OpenEvolve with it, replayed to the same gains; minutes.
	$(BIN)/python -m pytest -m "battery or not battery" -q tests/llm/test_recorded_tunings.py tests/llm/test_recorded_openevolve.py

mkb-battery: $(VENV)/installed-test  ## Every operator of the registry to MultiKernelBench and back; public solutions, with ASCENDOPT_MKB and ASCENDOPT_MKB_SOLUTIONS; hours.
	$(BIN)/python -m pytest -m "battery or not battery" -q -s tests/mkb

ray-battery: $(VENV)/installed-test  ## Tuning, prebuild and benchmark on a Ray cluster of three nodes, one of which is killed; minutes.
	$(PIP) install -c constraints.txt -e ".[ray]"
	$(BIN)/python -m pytest -m "battery or not battery" -q tests/survival/test_ray.py

# Leaks are not looked for: Python's are not ours. Limits on address space and torch don't go with AddressSanitizer, so
# this runs some that need neither; `make sanitize SANITIZED="tests/vnpu/test_api_*.py"` runs others. The libraries are
# built before: a compiler with AddressSanitizer preloaded takes for ever.
SANITIZED := $(addprefix tests/vnpu/test_,hazards.py restrictions.py cross_core.py api_adv_math.py api_compose.py)
sanitize: export ASCENDOPT_SANITIZE := 1
sanitize: $(VENV)/installed-test  ## The virtual NPU built with AddressSanitizer and UndefinedBehaviorSanitizer, tested.
	$(BUILD_TOOLKIT)
	ASAN_OPTIONS=detect_leaks=0:detect_stack_use_after_return=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libubsan.so)" \
	$(BIN)/python -m pytest -q $(PARALLEL) -p no:cacheprovider $(SANITIZED)

check: $(VENV)/installed-test  ## Lint, format, types and complexity, Python and C++.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q tests/unit/test_house.py
	# Nothing that nobody uses; of the package alone, though the others use it (3: something was found).
	found=$$($(BIN)/vulture ascendopt_tune tests benchmarks examples docs); test $$? -eq 0 -o $$? -eq 3 || exit 1; \
	! echo "$$found" | grep "^ascendopt_tune/"
	$(BIN)/lizard -l cpp -C 15 -w ascendopt_tune registry
	$(BIN)/lizard -l python -C 25 -w ascendopt_tune
	git ls-files 'ascendopt_tune/vnpu/*.h' 'ascendopt_tune/vnpu/*.hpp' 'ascendopt_tune/vnpu/*.cpp' 'ascendopt_tune/torch_ops/serving/fast/*' | xargs $(BIN)/clang-format --dry-run --Werror

bench-vnpu: $(VENV)/installed  ## How fast the virtual NPU is, as ratios; a few minutes, best on an idle machine.
	$(BIN)/python benchmarks/vnpu.py

bench-dispatch: $(VENV)/installed  ## What a tuned operator's dispatch costs a call; best on an idle machine.
	$(BIN)/python benchmarks/dispatch.py

bank: $(VENV)/installed  ## Build the shipped experience bank anew; about an hour, goes on where it was interrupted.
	$(BIN)/ascendopt-tune bank build --plan cache/bank/plan.toml --depth 1 --forward --bank build/bank --resume
	$(BIN)/ascendopt-tune bank export cache/bank/experience.jsonl --validated --bank build/bank

docs: $(VENV)/installed-test  ## Regenerate the tables of APIs, fidelity, settings and motifs; tests compare them.
	$(BIN)/python docs/api_table.py
	$(BIN)/python docs/fidelity_table.py
	$(BIN)/python docs/settings_table.py
	$(BIN)/python docs/motifs_table.py

site: $(VENV)/installed-test  ## The documentation site, in build/site; a warning is an error.
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

first-hour:  ## What a newcomer does, from README's install command to a served operator, in an empty folder; many minutes.
	$(PYTHON) tests/first_hour.py

examples: $(VENV)/installed-test  ## Every example, those too that CI leaves out; minutes. REFRESH=1 puts their numbers into the pages.
	REFRESH=$(REFRESH) $(BIN)/python -m pytest -m "battery or not battery" -q tests/e2e/test_examples.py

format: $(VENV)/installed-test
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	git ls-files 'ascendopt_tune/vnpu/*.h' 'ascendopt_tune/vnpu/*.hpp' 'ascendopt_tune/vnpu/*.cpp' 'ascendopt_tune/torch_ops/serving/fast/*' | xargs $(BIN)/clang-format -i

wheel-check: $(VENV)/installed-test  ## Build sdist and wheel, install the wheel outside the tree, tune with it; WITH="python3.13 --toolkit" checks more.
	$(BIN)/python tests/wheel_check.py $(WITH)

wheel-with-toolkit: $(VENV)/installed-test  ## A wheel for this platform with the virtual NPU's toolkit built, into dist/.
	rm -rf build/toolkit
	$(BIN)/ascendopt-tune toolkit --build --out build/toolkit
	ASCENDOPT_TOOLKIT_BUILT=$(CURDIR)/build/toolkit $(BIN)/python -m build --wheel

changelog: $(VENV)/installed-test  ## What is in changes/ becomes the section of VERSION in CHANGELOG.md.
	$(BIN)/towncrier build --yes --version $(VERSION)

clean:
	rm -rf $(VENV) build dist *.egg-info demo-output
