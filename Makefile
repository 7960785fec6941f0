# yarnctl: what a developer types. Every target makes .venv itself when it is missing.
#   PYTHON=/path/to/python3 make setup     to choose the interpreter (3.11 or newer)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PYTHONS := $(or $(PYTHON),python3.11 python3.12 python3.13 python3.14 python3)
# Built from its sources, not in the repository.
TASK_RUNNER := yarnctl/task_runner/yarnctl_task.py
RUNNER_SOURCES := $(shell find yarnctl/task_runner/runner -name '*.py' -o -name '*.sh') \
    yarnctl/task_runner/build.py yarnctl/task_runner/shipped.py
ACTORS := $(shell cat tests/architecture/actors.txt)
# More than cores: the tests that play a cluster wait most of the time. Each worker collects every test, 6 s.
WORKERS ?= 3
# Keep bytecode, whatever the shell says: the tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE :=
SEED ?= 1
COUNT ?= 200
HADOOP ?= 3.4.2
SPARK ?= 4.0.1
ROUNDS ?= 5
ON ?= live
# A plugin that comes with a tool of ours, unused, costs every process a second.
PYTEST := $(BIN)/python -m pytest -p no:schemathesis -p no:anyio
# All but what needs containers or a real Hadoop; a new folder is in it by itself.
TESTS := tests --ignore=tests/docker --ignore=tests/hadoop
# Research has tests of its own.
RESEARCH_TESTS := research/tests --ignore=research/tests/hadoop
# All that needs a real Hadoop besides the contract takes about half an hour.
HADOOP_TESTS ?= tests/hadoop

.PHONY: help setup demo dist test test-unit test-dist test-thorough test-research test-docker test-hadoop soak mutants hadoop-up hadoop-down bench-hadoop bench-admission bench-market bench-estimates bench-placement bench-study bench-spark bench-spark-production bench-spark-ahead bench-spark-overhead bench-spark-versions bench-flink bench-mixed runner lint format bench bench-small clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## make .venv with everything for development
	@echo "setup is done; type: source $(BIN)/activate && yarnctl --help"

demo: $(VENV)/.runtime ## show what checkpoint preemption does, on a recorded workload
	$(BIN)/yarn-emulator demo

test: $(VENV)/.dev ## run all tests but the slowest (six minutes)
	$(PYTEST) $(TESTS) -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

test-unit: $(VENV)/.dev ## run the unit and golden tests (a minute)
	$(PYTEST) tests/unit tests/golden -n 2 --dist loadgroup $(PYTEST_ARGS)

test-thorough: $(VENV)/.dev ## run every test with every random example (half an hour)
	$(PYTEST) $(TESTS) --thorough -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

test-research: $(VENV)/.dev ## run the tests of research/ (three minutes)
	$(PYTEST) $(RESEARCH_TESTS) -n $(WORKERS) --dist loadgroup $(PYTEST_ARGS)

test-docker: $(VENV)/.dev ## test the compose files: emulator and real Hadoop in containers (root or a Docker engine)
	$(PYTEST) tests/docker $(PYTEST_ARGS)

test-hadoop: $(VENV)/.dev ## test against a real Hadoop: contract, whole loop, pages, Kerberos (Java and Maven)
	$(PYTEST) tests/contract --hadoop -m hadoop $(HADOOP_CONTRACT) $(PYTEST_ARGS)
	$(PYTEST) $(HADOOP_TESTS) $(PYTEST_ARGS)

dist: $(VENV)/.dev ## make a release in dist/: wheel, source archive, wheelhouse, one file, deb and rpm (Go builds nfpm once); EXTRAS=kerberos
	$(BIN)/python -m release.dist dist $(EXTRAS)

test-dist: dist ## install each file of the release on a fresh host without the internet (root or a Docker engine)
	YARNCTL_DIST=dist YARNCTL_REQUIRE_DOCKER=1 $(PYTEST) tests/docker/test_fresh_hosts.py -rP $(PYTEST_ARGS)

soak: $(VENV)/.dev ## run the long checks whole: 300 outputs, 1,000 fault campaigns, I/O faults, 10^6 replayed steps, 10^5 markets, 551 faults of a daemon; SEED=N (hours)
	$(BIN)/python -m tests.soak equal --runs 300 --seed $(SEED)
	$(BIN)/python -m tests.soak io-faults
	$(BIN)/python -m tests.soak campaigns --runs 1000 --seed $(SEED)
	$(BIN)/python -m tests.soak budgets --histories 100000 --seed $(SEED)
	$(BIN)/python -m tests.soak replay --steps 1000000 --seed $(SEED)
	$(BIN)/python -m tests.soak market --runs 100000 --seed $(SEED)
	$(BIN)/python -m tests.soak hostile --looks 100000 --live 60 --seed $(SEED)
	$(BIN)/python -m tests.soak queue-names --seed $(SEED)
	$(BIN)/python -m tests.soak timeline --cases 100000 --seed $(SEED)
	$(BIN)/python -m tests.soak waiting --steps 100000 --seed $(SEED)
	$(BIN)/python -m yarn_research.campaigns.waiting_live
	$(BIN)/python -m tests.soak in-vain 10000 --seed $(SEED)
	$(BIN)/python -m tests.property.tree_grants 1000
	$(BIN)/python -m tests.soak.virtual_live
	$(BIN)/python -m tests.soak lowered-kinds
	$(BIN)/python -m tests.soak.addresses --count 100000 --seed $(SEED)

mutants: $(VENV)/.dev ## measure what the tests notice: COUNT=200 mutants of yarnctl drawn by SEED=N; changes sources, so run it in a clone
	$(BIN)/python -m tests.mutation.draw $(COUNT) $(SEED) mutants-out
	for each in mutants-out/*.sqlite; do name=$$(basename $$each .sqlite); $(BIN)/cosmic-ray exec tests/mutation/$$name.toml $$each; $(BIN)/cr-report $$each; done

hadoop-up: $(VENV)/.dev ## start a real Hadoop on loopback (Java and Maven); HADOOP=3.4.2|3.5.0|3.3.5
	@$(BIN)/python -m tests.hadoop up --hadoop $(HADOOP)

hadoop-down: $(VENV)/.dev ## stop it and wait for its end
	@$(BIN)/python -m tests.hadoop down

bench-hadoop: $(VENV)/.dev ## Fig 4 on a real Hadoop, scheme by scheme, into a new file of research/records; ROUNDS=5
	$(BIN)/python -m yarn_research.campaigns.bench --hadoop $(HADOOP) --rounds $(ROUNDS) $(if $(SCHEMES),--schemes $(SCHEMES))

bench-admission: $(VENV)/.dev ## measure deadlines met with plain queues and with admission, write admission-ON.json; ON=live|hadoop
	$(BIN)/python -m yarn_research.campaigns.admission_bench --on $(ON) --output admission-$(ON).json

bench-market: $(VENV)/.dev ## measure deadlines sold and kept beside FIFO and priorities, write market-ON.json; ON=live|hadoop (half an hour and more)
	$(BIN)/python -m yarn_research.campaigns.market_bench --on $(ON) --output market-$(ON).json

bench-estimates: $(VENV)/.dev ## MRM's Tables 2 and 3 on a real Hadoop: 128 small jobs, once; resumes, writes estimates-hadoop.json (half an hour)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.estimates_bench --rows estimates-hadoop.jsonl --output estimates-hadoop.json

bench-placement: $(VENV)/.dev ## applications placed across frameworks beside the least loaded pool, write placement-ON.json; resumes; ON=live|hadoop (three hours), PLACEMENT_ARGS=--slice
	$(BIN)/python -m yarn_research.campaigns.placement_bench --on $(ON) --output placement-$(ON).json $(PLACEMENT_ARGS)

bench-spark: $(VENV)/.dev ## drain executors of a real Spark at random, by the plan of research/notes/spark.md, write spark-soak.json; resumes (an hour), SPARK_ARGS="--minutes 30"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.spark_soak --output spark-soak.json $(SPARK_ARGS)

bench-spark-production: $(VENV)/.dev ## production beside Spark research on a real Hadoop, by the plan of research/notes/spark.md, write spark-production.json; resumes (two hours), SPARK_ARGS="--minutes 60"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.spark_beside --output spark-production.json $(SPARK_ARGS)

bench-spark-ahead: $(VENV)/.dev ## the same with --predicted-demand, beside alone and tuned YARN, write spark-ahead.json; resumes (an hour), SPARK_ARGS="--minutes 60"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.spark_ahead --output spark-ahead.json $(SPARK_ARGS)

bench-spark-overhead: $(VENV)/.dev ## measure what the drain settings cost without a drain, write spark-overhead.json (ten minutes)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.spark_overhead --output spark-overhead.json

bench-spark-versions: $(VENV)/.dev ## drain executors on another Spark or Hadoop, write spark-versions-SPARK-HADOOP.json; SPARK=3.5.9|4.0.1|4.3.0 HADOOP=3.4.2|3.5.0 (six minutes a pair)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.spark_versions --spark $(SPARK) --hadoop $(HADOOP) --output spark-versions-$(SPARK)-$(HADOOP).json

bench-mixed: $(VENV)/.dev ## MapReduce, Spark and Flink research together beside production in bursts, write mixed.json (a quarter of an hour)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.mixed_bench --output mixed.json

bench-flink: $(VENV)/.dev ## rescale a Flink job twenty times beside production, kill yarnctl at each step, write flink-rescales.json; resumes (half an hour), FLINK_ARGS="--minutes 20"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.flink_bench --output flink-rescales.json $(FLINK_ARGS)

bench-study: $(VENV)/.dev ## measure what preemption costs on a real Hadoop, by the plan of research/notes/study.md, write study-hadoop.json; resumes (five hours), STUDY_ARGS="--loads disk --minutes 60"
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m yarn_research.campaigns.study_bench --output study-hadoop.json $(STUDY_ARGS)

runner: | $(BIN)/python ## build the one file of the task runner from its package
	$(BIN)/python -m yarnctl.task_runner.build

lint: $(VENV)/.dev ## check with ruff, mypy, import contracts, the ban on clocks and chance, the house check and the English
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --config tests/architecture/actors-ruff.toml $(ACTORS)
	$(BIN)/lint-imports
	$(BIN)/python -m tests.architecture.house
	$(BIN)/python -m tests.architecture.style
	$(BIN)/mypy -n 2

format: $(VENV)/.dev ## format the code and apply the fixes of ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev ## measure both sides of every ratio, write bench-results.json
	$(BIN)/python -m yarn_research.bench

bench-small: $(VENV)/.dev ## run every benchmark once on small sizes: shows that each runs and its two sides agree
	$(BIN)/python -m yarn_research.bench --small

clean: ## remove .venv, caches and results
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-out
	rm -rf docker/hadoop/context dist
	rm -f bench-results.json soak-*.json soak-*.jsonl

# The demo needs no development tools: two stamps, the second implies the first. Both need the task runner,
# but a newer one needs no new installation.
$(VENV)/.runtime: pyproject.toml research/pyproject.toml hatch_build.py | $(BIN)/python $(TASK_RUNNER)
	@echo "installing yarnctl into $(VENV) ..."
	@$(PIP) install --editable '.[emulator,report]' --editable research
	@touch $@

$(VENV)/.dev: pyproject.toml research/pyproject.toml hatch_build.py | $(BIN)/python $(TASK_RUNNER)
	@echo "installing yarnctl and its development tools into $(VENV) ..."
	@$(PIP) install --editable '.[all,dev]' --editable research
	@touch $(VENV)/.runtime $@

$(TASK_RUNNER): $(RUNNER_SOURCES) | $(BIN)/python
	@$(BIN)/python -m yarnctl.task_runner.build

$(BIN)/python:
	@for python in $(PYTHONS); do \
	    if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	        echo "making $(VENV) with $$python"; \
	        exec "$$python" -m venv --clear $(VENV); \
	    fi; \
	done; \
	echo "error: none of '$(PYTHONS)' is Python 3.11 or newer with venv (Debian: apt install python3-venv); set PYTHON" >&2; \
	exit 1
