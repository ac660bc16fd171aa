# posviz in one-word commands; `make help` lists them.
# Works with the make of macOS (GNU make 3.81) and needs no activated environment:
# what is missing is installed into .venv first, once, and again when the requirements change.

VENV    ?= .venv
ADDRESS ?= 127.0.0.1
# Set PORT to insist on one; without it Streamlit takes 8501, or the next port that is free.
PORT    ?=
# Set PYTHON to choose the interpreter of a new .venv; without it the first that is new enough.
PYTHON  ?=
# Set ARGS to pass something on: make test ARGS="-k rope -x"
ARGS    ?=

PY          := $(VENV)/bin/python
RUN_STAMP   := $(VENV)/.posviz-run
DEV_STAMP   := $(VENV)/.posviz-dev
MODEL_STAMP := $(VENV)/.posviz-models
BENCH_STAMP := $(VENV)/.posviz-bench

CODE := app.py pages posviz scripts tests benchmarks
LOCALE := posviz/ui/locale
LANGUAGES := zh

# The browser of the browser tests and benchmarks.
ifeq ($(POSVIZ_CHROMIUM),)
POSVIZ_CHROMIUM := $(shell \
	for b in chromium chromium-browser google-chrome-stable google-chrome \
		"/Applications/Google Chrome.app/Contents/MacOS/Google Chrome" \
		"/Applications/Chromium.app/Contents/MacOS/Chromium"; do \
		command -v "$$b" && break; \
	done 2>/dev/null)
# The tests take the same browser without the machinery of a window, where it is installed: a new tab costs it
# a tenth. The benchmarks measure what a person has.
TEST_BROWSER := $(or $(shell command -v chromium-headless-shell 2>/dev/null),$(POSVIZ_CHROMIUM))
else
TEST_BROWSER := $(POSVIZ_CHROMIUM)
endif
export POSVIZ_CHROMIUM

NO_BROWSER = No Chromium was found, so the browser tests cannot run: install it \
	(Debian: apt install chromium fonts-noto-cjk; macOS: brew install --cask chromium), \
	or set POSVIZ_CHROMIUM to its path.

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run dev test lint format bench models messages install browser clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

run: $(RUN_STAMP)  ## start the app on this machine (PORT=8600 for another port)
	@$(PY) -m streamlit run app.py --server.address=$(ADDRESS) $(if $(PORT),--server.port=$(PORT))

dev: $(RUN_STAMP)  ## the same, and rerun when a file is saved
	@$(PY) -m streamlit run app.py --server.address=$(ADDRESS) $(if $(PORT),--server.port=$(PORT)) \
		--server.fileWatcherType=auto --server.runOnSave=true --client.toolbarMode=developer \
		--client.showErrorDetails=full

test: browser lint  ## lint, then every test, those in a real browser included (ARGS="-k rope")
	@POSVIZ_CHROMIUM="$(TEST_BROWSER)" HF_HUB_OFFLINE=1 $(PY) -m pytest -n 2 --dist loadfile $(ARGS)

lint: $(DEV_STAMP)  ## style, formatting, and who may import whom
	@$(PY) -m ruff check $(wildcard $(CODE))
	@$(PY) -m ruff format --check $(wildcard $(CODE))
	@$(PY) -c 'from importlinter.cli import lint_imports_command; lint_imports_command()' --no-logo

format: $(DEV_STAMP)  ## rewrite the code in the project's style
	@$(PY) -m ruff check --fix $(wildcard $(CODE))
	@$(PY) -m ruff format $(wildcard $(CODE))

bench: $(BENCH_STAMP)  ## measure posviz beside other tools; prints one table
	@HF_HUB_OFFLINE=1 $(PY) -m benchmarks $(ARGS)

models: $(MODEL_STAMP)  ## fetch two real models (176 MB) into models/, once
	@$(PY) -m posviz.models.fetch $(ARGS)

messages: $(DEV_STAMP)  ## collect the messages, update and compile the translations
	@mkdir -p build
	@$(PY) -m babel.messages.frontend --quiet extract --project=posviz --copyright-holder='posviz contributors' \
		--add-comments=TRANSLATORS: --add-location=file --sort-by-file --width=100 \
		--output-file=build/posviz.pot $(wildcard app.py pages posviz/ui)
	@for language in $(LANGUAGES); do \
		test -f $(LOCALE)/$$language/LC_MESSAGES/posviz.po && continue; \
		$(PY) -m babel.messages.frontend --quiet init --domain=posviz --locale=$$language \
			--input-file=build/posviz.pot --output-dir=$(LOCALE) || exit 1; \
	done
	@$(PY) -m babel.messages.frontend --quiet update --domain=posviz --input-file=build/posviz.pot \
		--output-dir=$(LOCALE) --no-fuzzy-matching --ignore-obsolete --ignore-pot-creation-date --width=100
	@$(PY) -m babel.messages.frontend compile --domain=posviz --directory=$(LOCALE) --statistics

install: $(DEV_STAMP)  ## only prepare .venv, for development

clean:  ## remove .venv, caches and build outputs
	rm -rf $(VENV) build dist test-results htmlcov .coverage .pytest_cache .ruff_cache .hypothesis \
		.import_linter_cache *.egg-info
	find app.py pages posviz scripts tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true

# Elsewhere the browser tests are skipped with this reason; in CI they must run.
browser:
	@if [ -z "$(TEST_BROWSER)" ]; then \
		echo "$(NO_BROWSER)" >&2; \
		[ "$$CI" != true ]; \
	fi

# The environment. A stamp is newer than the requirements that it stands for; a failed
# install leaves none. The interpreter is an order-only prerequisite: its date means nothing.

$(RUN_STAMP): requirements.txt scripts/install.py | $(PY)
	@echo "Installing what posviz needs into $(VENV) (once; a few minutes)"
	@$(PY) scripts/install.py requirements.txt
	@touch $@

$(DEV_STAMP): requirements.txt requirements-models.txt requirements-dev.txt scripts/install.py | $(PY)
	@echo "Installing what posviz and its tests need into $(VENV) (once; a few minutes)"
	@$(PY) scripts/install.py requirements-dev.txt
	@touch $@ $(RUN_STAMP) $(MODEL_STAMP)

$(MODEL_STAMP): requirements.txt requirements-models.txt scripts/install.py | $(PY)
	@echo "Installing what real models need into $(VENV) (once)"
	@$(PY) scripts/install.py requirements.txt requirements-models.txt
	@touch $@ $(RUN_STAMP)

$(BENCH_STAMP): requirements-bench.txt requirements-compared.txt $(DEV_STAMP)
	@$(PY) scripts/install.py requirements-bench.txt
	@$(PY) -m pip install --quiet --no-deps -r requirements-compared.txt
	@touch $@

$(PY):
	@for python in $(if $(PYTHON),$(PYTHON),python3 python3.13 python3.12 python3.11 python3.14 python); do \
		"$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
		if ! "$$python" -c 'import venv, ensurepip' >/dev/null 2>&1; then \
			echo "$$python cannot make virtual environments: on Debian or Ubuntu, run" \
				"'sudo apt install python3-venv' and try again." >&2; \
			exit 1; \
		fi; \
		exec "$$python" -m venv --clear $(VENV); \
	done; \
	echo "posviz needs Python 3.11 or newer, but $(or $(PYTHON),python3) is" \
		"$$($(or $(PYTHON),python3) -c 'import platform; print(platform.python_version())' 2>/dev/null \
			|| echo 'not there'): install one, or name it with PYTHON=/path/to/python3.12." >&2; \
	exit 1
