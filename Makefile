# `make demo` and `make test` set up a virtual environment of their own (.venv) the first time.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
CASES ?= tests/evals/cases
RUNS ?= 3
# Each worker takes one stretch of the tests and helps the other at the end: what a file has made serves the whole file.
SPREAD := -n 2 --dist worksteal

# Hundreds of tests start programs: without kept bytecode each of them would compile the package anew.
unexport PYTHONDONTWRITEBYTECODE
# Each worker has one core. Threads of numpy and torch that wait for each other there take ten times the time.
checked test-slow: export OMP_NUM_THREADS ?= 1

.PHONY: install demo docs test test-slow lint types checked skills eval eval-skills bench healthy mangled nightly clean

$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e .
	touch $@

$(VENV)/.dev: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,dev-live,tensorboard,agent,data]'
	touch $@ $(VENV)/.base

demo: $(VENV)/.base ## the main job, offline: diagnose, approve, fix, verify
	$(BIN)/python examples/demo.py

install: $(VENV)/.dev ## the environment of `make test`, nothing else

lint: $(VENV)/.dev ## ruff and mypy --strict
	$(BIN)/ruff check .
	$(BIN)/mypy

types: $(VENV)/.dev
	$(BIN)/mypy

checked: $(VENV)/.dev
	$(BIN)/pytest $(SPREAD)

# mypy has one core only, and the tests wait now and then: side by side they end sooner.
test: $(VENV)/.dev ## ruff, mypy --strict and the tests that are not slow
	$(BIN)/ruff check .
	$(MAKE) --no-print-directory -j 2 types checked

test-slow: $(VENV)/.dev ## what takes longer
	$(BIN)/pytest $(SPREAD) -m slow $(ARGS)

skills: $(VENV)/.base ## render the skills' reference pages from the catalog, and the archive of the instruments
	$(BIN)/python -m traindx_tools.catalog.references skills

eval: $(VENV)/.dev ## diagnose every case of CASES and print the score; LEVEL='run fix' runs them too
	$(BIN)/python tests/evals/eval_cases.py $(CASES) -v $(foreach level,$(LEVEL),--level $(level))

eval-skills: $(VENV)/.dev ## the skills on a model, with and without: needs your key in the environment, and MODEL=
	$(BIN)/python tests/evals/skills/eval_skills.py --model "$(MODEL)" --runs $(RUNS) $(ARGS)

bench: $(VENV)/.dev ## start-up and reading speed, as ratios; what the skills and a session cost in tokens
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/read_speed.py
	$(BIN)/python benchmarks/readers.py
	$(BIN)/python benchmarks/hook_latency.py
	$(BIN)/python benchmarks/skill_cost.py
	$(BIN)/python benchmarks/session_prompts.py

COUNT ?= 10000000
JOURNAL ?= build/mangled

healthy: $(VENV)/.dev ## healthy logs of up to 200,000 steps, and every false alarm on them (ten minutes)
	$(BIN)/python benchmarks/healthy_logs.py

mangled: $(VENV)/.dev ## ten million mangled logs without a crash and without a stall (a night; COUNT= for fewer; goes on)
	$(BIN)/python -W ignore benchmarks/mangled.py --count $(COUNT) --journal $(JOURNAL)

nightly: healthy mangled test-slow ## what takes a night

$(VENV)/.docs: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[docs]'
	touch $@

docs: $(VENV)/.docs ## the documentation as a site, in build/site
	$(BIN)/mkdocs build --quiet

clean:
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
