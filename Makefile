# Everything runs in .venv, made on first use; `make help` lists the targets.
PYTHON ?= python3
HISTORY ?= model_tests/data/rabbitmq-b-confirm-manual-broker-kill.jsonl.gz
PYTEST_ARGS ?=

VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
SERVERS := $(VENV)/servers
DRAWINGS := diagrams
PAGES := docs/systems
INDEX := spec/INDEX.md
SEEDS := docs/seeds.md
CAMPAIGN_PROGRAMS ?= 200
ifndef CAMPAIGN_SEED
CAMPAIGN_SEED := $(strip $(shell od -An -N4 -tu4 /dev/urandom))
endif
DRAWN := $(addprefix model_tests/,engine journal conform verify checker/test_executors.py)
GENERATED := $(DRAWINGS) $(PAGES) $(INDEX) $(SEEDS)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help install run test whole defects mutants reductions searches applications campaign histories fuzz bench live reality lint draw pages fresh wheel clean

help: ## list the targets
	@awk -F ': .*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(INSTALLED) ## make .venv with the package, its extras and the tools

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo 'ackfsm needs Python 3.11 or later: say `make PYTHON=/path/to/python3`' >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo '$(PYTHON) cannot make environments: install its venv module (Debian: python3-venv)' >&2; exit 1; }
	@echo 'Installing into $(VENV): a few minutes the first time (PySpark and a Java runtime are large)'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

run: $(INSTALLED) ## check a configuration, verify a real history on Spark, draw the machines
	@echo '== 1. Every behaviour of AUTO_ACKNOWLEDGE with a listener, under every single fault'
	$(BIN)/ackfsm check --profile jms --set ack_mode=AUTO_ACKNOWLEDGE --set consumption=listener
	@echo '== 2. A history recorded from a real broker that was killed, verified on Spark'
	$(BIN)/ackfsm verify --engine spark $(HISTORY)
	@echo '== 3. Drawings of the machines, into $(DRAWINGS)/'
	$(BIN)/ackfsm draw --all --output $(DRAWINGS)

$(SERVERS): .ci/servers | $(INSTALLED)
	@.ci/servers
	@[ ! -w $(VENV) ] || touch $@

test: $(INSTALLED) $(SERVERS) ## run the tests, on all cores (in one process: PYTEST_ARGS=-n0)
	@# They start Python many hundred times: whatever the environment says, it keeps what it has compiled.
	env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest -n auto --dist loadfile $(PYTEST_ARGS)

whole: export ACKFSM_TESTS_WHOLE := 1
whole: test ## the same before a release, with whole products of cases where the tests take a few

defects: $(INSTALLED) $(SERVERS) ## put defects into copies of engine and journals, and list what no test notices (DEFECTS_ARGS="--jobs 2")
	$(BIN)/python -m model_tests.defects $(DEFECTS_ARGS)

mutants: $(INSTALLED) ## change every row of the tables in turn, and list what nobody notices (some minutes)
	$(BIN)/python -m model_tests.mutants

reductions: $(INSTALLED) ## search the whole matrix with and without reductions, and compare (some minutes)
	$(BIN)/python -m model_tests.reductions

searches: $(INSTALLED) ## search drawn networks of every shape in every way, and compare (SEARCHES_ARGS="--networks 20000")
	$(BIN)/python -m model_tests.searches $(SEARCHES_ARGS)

applications: $(INSTALLED) ## run drawn application programs on the engine (APPLICATIONS_ARGS="--programs 100000 --jobs 2")
	$(BIN)/python -m model_tests.applications $(APPLICATIONS_ARGS)

campaign: $(INSTALLED) ## run many drawn programs of each suite under a fresh seed (CAMPAIGN_PROGRAMS=20000 CAMPAIGN_SEED=7)
	@echo 'CAMPAIGN_PROGRAMS=$(CAMPAIGN_PROGRAMS) CAMPAIGN_SEED=$(CAMPAIGN_SEED)'
	$(BIN)/python -m pytest -n auto --drawn $(CAMPAIGN_PROGRAMS) --hypothesis-seed $(CAMPAIGN_SEED) $(PYTEST_ARGS) $(DRAWN)
	$(BIN)/python -m model_tests.applications --programs $(CAMPAIGN_PROGRAMS) --seed $(CAMPAIGN_SEED) $(APPLICATIONS_ARGS)
	$(BIN)/python -m model_tests.histories --runs $(CAMPAIGN_PROGRAMS) --seed $(CAMPAIGN_SEED) $(HISTORIES_ARGS)

histories: $(INSTALLED) ## verify a million legal histories and many damaged ones (HISTORIES_ARGS="--runs 1000000 --jobs 2")
	$(BIN)/python -m model_tests.histories $(HISTORIES_ARGS)

fuzz: $(INSTALLED) ## draw command lines, files and calls, and see what comes of them (FUZZ_ARGS="--minutes 60")
	$(BIN)/python -m model_tests.fuzz $(FUZZ_ARGS)

bench: $(INSTALLED) ## measure speed, each figure beside a rival or a limit (some minutes)
	$(BIN)/python -m model_tests.benchmarks $(BENCH_ARGS)

live: $(INSTALLED) $(SERVERS) ## drive real brokers through every mode and fault, into docs/live (an hour; LIVE_ARGS="--broker artemis")
	$(BIN)/python -m model_tests.live_bench $(LIVE_ARGS)

reality: $(INSTALLED) $(SERVERS) ## measure three brokers behind a slow line (15 minutes; REALITY_ARGS="--real-time", as root)
	$(BIN)/python -m model_tests.reality $(REALITY_ARGS)

lint: $(INSTALLED) ## style, format, types, floors
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	@! git grep -nE '^(<{7}|>{7}) ' # what a merge has left

draw: $(INSTALLED) pages ## make the generated files again
	$(BIN)/python -m ackfsm.cli draw --all --output $(DRAWINGS)

pages: $(INSTALLED) ## of these only the pages of the systems, the index of the tables and the seeds
	$(BIN)/python -m ackfsm.cli systems --output $(PAGES)
	$(BIN)/python -m ackfsm.cli where --output $(INDEX)
	$(BIN)/python -m ackfsm.cli claims --seeds --output $(SEEDS)

fresh: draw ## fail unless the generated files are those in the index
	@git diff --exit-code --stat -- $(GENERATED) && test -z "$$(git ls-files --others --exclude-standard $(GENERATED))" || \
		{ echo '$(GENERATED): out of date, and made again: add them to the commit' >&2; exit 1; }

wheel: $(INSTALLED) ## build dist/*.tar.gz and, from it, dist/*.whl
	@rm -rf dist
	$(BIN)/python -m build --no-isolation

clean: ## remove the environment, builds and caches
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find ackfsm model_tests -name __pycache__ -prune -exec rm -rf {} +
