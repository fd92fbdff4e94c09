# Everything runs in a virtual environment of the project's own; each target sets up what it needs.
VENV := .venv
PY := $(VENV)/bin/python
READY := $(VENV)/.ready

.PHONY: conformance demo test test-fast prove bench check setup wheel clean
.DEFAULT_GOAL := test

setup: $(READY)

$(READY): pyproject.toml constraints.txt scripts/setup
	@scripts/setup $(VENV)
	@touch $@

demo: $(READY)
	@$(PY) -m taskwall.demo

test: $(READY)
	@scripts/browser
	$(PY) -m pytest -n auto

test-fast: $(READY)
	$(PY) -m pytest -n auto -m "not slow"

prove: $(READY)
	TASKWALL_LONG=1 $(PY) -m pytest tests/proof tests/test_postgres_machine.py -rs

# The official MCP client and the MCP inspector (npm) against our server; outside CI, for both are large.
conformance: $(READY)
	@test -x .venv-conformance/bin/python || $(PY) -m venv .venv-conformance
	@.venv-conformance/bin/python -m pip install -q --disable-pip-version-check 'mcp>=2.3'
	.venv-conformance/bin/python tests/conformance/mcp_client.py $(VENV)/bin/taskwall
	tests/conformance/inspector $(VENV)/bin/taskwall
	tests/conformance/validate_plugin.sh
	$(PY) tests/conformance/claude_round_trip.py
	$(PY) tests/conformance/claude_worker.py

# BENCH=--quick: under two minutes; BENCH_SIZES="1000 10000": just these. Rivals come from npm and PyPI, outside CI.
bench: $(READY)
	@$(PY) bench/run.py $(BENCH) $(if $(BENCH_SIZES),--sizes $(BENCH_SIZES))

check: $(READY)
	$(VENV)/bin/ruff format --check src tests
	$(VENV)/bin/ruff check src tests
	$(VENV)/bin/mypy

wheel: $(READY)
	$(PY) -m pip wheel -q --no-deps -w dist .

clean:
	rm -rf $(VENV) dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
