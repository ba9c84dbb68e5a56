# Everything that a checkout needs: the first target that is asked for makes the environment.
PYTHON ?= python3
PIP_FLAGS ?=
NAME ?= resnet50
# `make sweep WIDTH=` takes the models at full width.
WIDTH ?= --small

BIN := .venv/bin
STAMP := .venv/.installed
QUIET := OMP_NUM_THREADS=1 TF_CPP_MIN_LOG_LEVEL=3

.PHONY: demo test lint bench golden sweep clean

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

clean:
	rm -rf build ported .pytest_cache .mypy_cache .ruff_cache

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check $(PIP_FLAGS) -c constraints.txt -e ".[dev]"
	@touch $@
