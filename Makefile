# Everything runs in a virtual environment of the project's own; each target sets up what it needs.
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready

.PHONY: demo test test-fast prove check setup wheel clean
.DEFAULT_GOAL := test

setup: $(READY)

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup $(VENV)
	@touch $@

demo: $(READY)
	@$(PY) -m taskwall.demo

test: $(READY)
	$(PY) -m pytest -n auto

test-fast: $(READY)
	$(PY) -m pytest -n auto -m "not slow"

prove: $(READY)
	$(PY) -m pytest tests/proof -rs

check: $(READY)
	$(VENV)/bin/ruff format --check src tests
	$(VENV)/bin/ruff check src tests
	$(VENV)/bin/mypy

wheel: $(READY)
	$(PY) -m pip wheel -q --no-deps -w dist .

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
