# Everything that a checkout needs: the first target that is asked for makes the environment.
PYTHON ?= python3
PIP_FLAGS ?=
NAME ?= resnet50
# `make sweep WIDTH=` takes the models at full width.
WIDTH ?= --small

BIN := .venv/bin
STAMP := .venv/.installed
QUIET := OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=3

.PHONY: demo test lint bench golden sweep real clean

demo: $(STAMP)
	$(BIN)/porter port zoo:$(NAME) --to keras -o ported/$(NAME) --verify forward --force
	$(BIN)/porter bench zoo:$(NAME) ported/$(NAME) -o ported/$(NAME)/bench.json
	@echo
	@echo "source: ported/$(NAME)/model.py"
	@echo "report: ported/$(NAME)/report.html"

test: $(STAMP)
	$(QUIET) $(BIN)/python -m pytest -n 2

# mypy knows no folder under another name, so it gets the installed shape of the package as links.
lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	@rm -rf build/types && mkdir -p build/types/porter
	@ln -s $(CURDIR)/porter/* $(CURDIR)/converters $(CURDIR)/zoo build/types/porter/
	MYPYPATH=build/types $(BIN)/mypy -p porter

bench: $(STAMP)
	$(BIN)/python -m benchmarks.port_speed --quick
	$(BIN)/python -m benchmarks.ported_vs_twin --quick

golden: $(STAMP)
	$(QUIET) $(BIN)/python -m tests.golden.regenerate

sweep: $(STAMP)
	$(QUIET) $(BIN)/porter zoo verify --to keras $(WIDTH)
	$(QUIET) $(BIN)/porter zoo verify --to torch $(WIDTH)
	$(QUIET) $(BIN)/python -m pytest -n 2 -m sweep

# Real models with the weights that packages ship, in an environment of their own beside porter's: their own
# requirements would bring other builds of torch (docs/real-weights.md).
REAL := build/real
real: $(REAL)/.installed
	$(QUIET) $(REAL)/bin/python -m pytest -m real -n 2 --dist loadfile tests/real

$(REAL)/.installed: $(STAMP) tests/real/requirements.txt tests/real/dependencies.txt
	$(PYTHON) -m venv $(REAL)
	@echo $(CURDIR)/.venv/lib/*/site-packages > $$(echo $(REAL)/lib/*/site-packages)/porter_environment.pth
	$(REAL)/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r tests/real/dependencies.txt
	$(REAL)/bin/pip install --quiet --disable-pip-version-check --no-deps -e . -r tests/real/requirements.txt
	@touch $@

clean:
	rm -rf build ported .pytest_cache .mypy_cache .ruff_cache

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e ".[dev]"
	@touch $@
