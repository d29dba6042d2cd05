# Each target sets up what it needs; scripts/ holds the steps and docs/development.md explains them.

ARGS ?=

.DEFAULT_GOAL := run
.PHONY: run dev build build-release test test-long lint fmt bench setup help

run: ## Set up, build and serve http://127.0.0.1:3000 (ARGS: arguments for the server)
	@scripts/run.sh $(ARGS)

dev: ## Watch the sources, rebuild and reload (needs cargo-leptos)
	@scripts/dev.sh $(ARGS)

build: ## Build the page and the server for development
	@scripts/setup.sh run && scripts/build.sh dev

build-release: ## Build the page and the server as they are shipped
	@scripts/setup.sh run && scripts/build.sh release

test: ## Set up, lint, build and run every test, the browser's too
	@scripts/test.sh

test-long: ## The same with the long checks at their full counts
	@RUNLOOM_TEST_LONG=1 scripts/test.sh

lint: ## Check form and lints, warnings denied
	@scripts/lint.sh

fmt: ## Format the Rust sources
	@cargo fmt --all

bench: ## Measure a release build (ARGS: single files of end2end/bench/)
	@scripts/bench.sh $(ARGS)

setup: ## Set up what the tests need, and nothing else
	@scripts/setup.sh test

help: ## Show this list
	@sed -n 's/^\([a-z-]*\): ## \(.*\)/  \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
