.DEFAULT_GOAL := help
.PHONY: help setup demo test check bench images format
NODE := node_modules/.bin/node --disable-warning=ExperimentalWarning

help: ## This list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install what is missing: Node and libraries by npm, tor by apt
	@scripts/setup.sh

demo: setup ## A private Tor network, an onion, and a page fetched through it (Ctrl-C ends it)
	@bin/postern demo $(ARGS)

test: ## Everything that tests the project; ARGS=FILE for one file
	@scripts/setup.sh test
	@$(NODE) scripts/check.ts
	@$(NODE) test/run.ts $(ARGS)

check: setup ## Types, style, architecture, generated files
	@$(NODE) scripts/check.ts

bench: ## The figures of the design's bars; ARGS='NAME --json' for one
	@scripts/setup.sh bench
	@$(NODE) bench/main.ts $(ARGS)

images: ## The container images, into dist/images (buildah, no daemon)
	@scripts/setup.sh images
	@$(NODE) scripts/images.ts $(ARGS)

format: setup ## Bring the sources into the house style
	@node_modules/.bin/biome check --write .
