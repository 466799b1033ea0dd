# Needs Go, git and GNU make, a C compiler for race and lint, and root only to install Chromium for test-browser. "make help" lists what there is to make.

ACTIONLINT_VERSION    = v1.7.12
GOLANGCI_LINT_VERSION = v2.15.0
GOVULNCHECK_VERSION   = v1.8.0
VALE_VERSION          = v3.22.0

# What a release is made of: version, commit, and the time of that, which all its files have. Whoever can push a tag chooses the version, so make does not
# expand these, and recipes have them in their environment, where a shell takes them for text.
ifneq ($(filter image release release-again,$(MAKECMDGOALS)),)
override VERSION           := $(or $(value VERSION),$(shell git describe --tags --match 'v*' --dirty 2>/dev/null),v0.0.0-dev)
override COMMIT            := $(or $(value COMMIT),$(shell git describe --always --abbrev=40 --dirty --exclude '*' 2>/dev/null),unknown)
override SOURCE_DATE_EPOCH := $(or $(value SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),0)
export VERSION COMMIT SOURCE_DATE_EPOCH
endif

# The stack's programs and releases are built so. With the same flags for tests and linters Go compiles each package once.
export CGO_ENABLED ?= 0
export GOFLAGS     ?= -trimpath

CROSSPLANE ?= v2
FUZZTIME   ?= 10m
FUZZ       ?= .
PARALLEL   ?= 2
RUN        ?= ^TestMatrix
RACE       ?= ^TestCasesV1$$
SEED       ?= 1000000
FORESTS    ?= 100000
XRS        ?= 500
MRS        ?= 10
PAIRS      ?= 5
LARGE      ?= 5000
HELD       ?= 1000
OBJECTS    ?= 100000

MATRIX = $(if $(SHARD),$(or $(shell awk '$$1 == "$(SHARD)" { print $$2 }' test/e2e/shards.txt),$(error test/e2e/shards.txt has no shard $(SHARD))),$(RUN))

MODULES       = . test test/applier test/cloud test/gate test/manifests test/restorer test/upjet
ACTIONLINT    = go run github.com/rhysd/actionlint/cmd/actionlint@$(ACTIONLINT_VERSION)
GOLANGCI_LINT = go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_LINT_VERSION)
GOVULNCHECK   = go run golang.org/x/vuln/cmd/govulncheck@$(GOVULNCHECK_VERSION)
VALE          = CGO_ENABLED=1 go run github.com/vale-cli/vale/v3/cmd/vale@$(VALE_VERSION)

# Vale is built with cgo. Without a C compiler Go's message names neither.
PROSE = if command -v "$$(go env CC | cut -d ' ' -f 1)" >/dev/null; then $(VALE) --glob='*.md' README.md CHANGELOG.md CONTRIBUTING.md SECURITY.md docs example; \
	else echo "vale, which lints prose, needs a C compiler, and there is no $$(go env CC): install one, or name it with CC=" >&2; false; fi

.DEFAULT_GOAL = help

.PHONY: help
help: ## Show this list.
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build the plugin into bin/.
	CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o bin/velero-plugin-for-crossplane .

.PHONY: compile
compile: ## Compile all packages of all modules, for what looks on.
	@for module in $(MODULES); do echo "compiling $$module"; (cd $$module && go build -o /dev/null ./...) || exit 1; done

.PHONY: image
image: ## Build the image for linux/amd64 and linux/arm64 without a container engine, as an OCI layout in bin/image.
	cd test && go run ./cmd/image --version "$$VERSION" --commit "$$COMMIT" --time "$$SOURCE_DATE_EPOCH"

.PHONY: release
release: ## Make all that is published of a version, in bin/release (VERSION=v1.2.3 PLATFORMS=linux/amd64).
	cd test && go run ./cmd/release --version "$$VERSION" --commit "$$COMMIT" --time "$$SOURCE_DATE_EPOCH" $(if $(PLATFORMS),--platforms $(PLATFORMS))

.PHONY: release-again
release-again: ## Make the same once more, from a copy of the files elsewhere, and compare it bit for bit (COLD=1: with an empty build cache).
	@dir=$$(mktemp -d); trap 'chmod -R u+w "$$dir"; rm -rf "$$dir"' EXIT; mkdir "$$dir/elsewhere" "$$dir/cache"; \
	git ls-files -z --cached --others --exclude-standard | xargs -0 cp --parents -t "$$dir/elsewhere" && \
	(cd test && $(if $(COLD),GOCACHE="$$dir/cache") go run ./cmd/release --root "$$dir/elsewhere" \
		--version "$$VERSION" --commit "$$COMMIT" --time "$$SOURCE_DATE_EPOCH" $(if $(PLATFORMS),--platforms $(PLATFORMS))) >/dev/null && \
	diff bin/release/SHA256SUMS "$$dir/elsewhere/bin/release/SHA256SUMS" && \
	cd "$$dir/elsewhere/bin/release" && sha256sum --check --quiet SHA256SUMS && \
	echo "$$(wc -l <SHA256SUMS) files are the same, made in $$dir/elsewhere"

# "make lint" runs vet.
.PHONY: unit
unit: ## Run the tests that need no stack, which takes minutes.
	go test -vet=off -timeout 30m ./...
	cd test/applier && go test -vet=off ./...
	cd test/cloud && go test -vet=off ./...
	cd test/gate && go test -vet=off ./...
	cd test/manifests && go test -vet=off ./...
	cd test/upjet && go test -vet=off ./...
	cd test/restorer && go test -vet=off ./forest
	cd test && go test -vet=off $$(go list ./... | grep -v '/e2e$$')

.PHONY: needs
needs:
	@echo 'make test needs Go, git, 6 GB of memory and 20 GB of disk. On two cores it takes about 20 minutes,'
	@echo 'and the first time up to an hour more, to build the real stack. It needs no root, and listens on'
	@echo 'the loopback address only. "make unit" takes minutes, and needs no stack.'

.PHONY: test
test: needs unit stack-build ## Run all tests: unit, then those on the real stack, which is built the first time.
	cd test/restorer && go test -vet=off -count=1 -timeout 10m -v . ./writes
	cd test && go test -vet=off -count=1 -timeout 60m -parallel 3 -v ./e2e/...

.PHONY: race
race: $(if $(RACE),stack-build) ## Run what needs no stack, and a sample of the rest, with the race detector, which needs a C compiler (RACE='^TestCrossplaneV2$$', empty for none; MODULES=.).
	@for module in $(filter-out test/restorer,$(MODULES)); do \
		echo "testing $$module with the race detector"; \
		(cd $$module && CGO_ENABLED=1 go test -race -short $$(go list ./... | grep -v '/e2e$$')) || exit 1; \
	done
	$(if $(RACE),cd test && CGO_ENABLED=1 go test -race -count=1 -timeout 60m -run '$(RACE)' -v ./e2e)

.PHONY: forests
forests: stack-build ## Judge more random forests, in memory and restored by Velero's own engine (SEED=1000000 FORESTS=100000).
	cd test/restorer && go test -count=1 -timeout 10h -run '^TestForests$$' ./forest -forest.seed $(SEED) -forest.count $(FORESTS)
	cd test/restorer && go test -count=1 -timeout 10h -v . -forest.seed $(SEED) -forest.count $$(($(FORESTS) / 500))

.PHONY: browser
browser: ## Install Debian's Chromium, which test-browser needs, unless there is one (CHROMIUM=/path/to/it).
	@for program in "$(CHROMIUM)" chromium chromium-browser google-chrome chrome; do \
		if command -v "$$program" >/dev/null; then exit 0; fi; \
	done; \
	if [ "$$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then \
		echo 'There is no Chromium. Install it with the packages of your distribution ("apt-get install chromium"), or name one: CHROMIUM=/path/to/it' >&2; exit 1; \
	fi; \
	apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core

.PHONY: test-browser
test-browser: browser ## Open report pages in headless Chromium; ARGS=-artifacts keeps what they look like.
	CHROMIUM='$(CHROMIUM)' go test -count=1 -tags browser -run '^TestBrowser' -v $(ARGS) ./internal/printer

.PHONY: matrix
matrix: stack-build ## Run the tests that are too long for every change: more versions, every step (RUN=TestMatrix, or SHARD=faults, one of test/e2e/shards.txt).
	cd test && go test -count=1 -timeout $(if $(SHARD),80m,5h) -tags matrix -run '$(MATRIX)' -v ./e2e/...

.PHONY: explore
explore: ## Explore every order of steps of larger worlds, which takes longer than what "make unit" explores.
	go test -count=1 -timeout 2h -v -run '^TestExplore' ./internal/explorer -args -large

.PHONY: bench
bench: ## Measure what the plugin costs on the real stack, and write docs/dev/performance.md (XRS=500 MRS=10 PAIRS=5 LARGE=5000 HELD=1000 OBJECTS=100000 ONLY= KEEP= UPJET=).
	cd test && go run ./cmd/bench --xrs $(XRS) --mrs $(MRS) --pairs $(PAIRS) --large $(LARGE) --held $(HELD) --objects $(OBJECTS) \
		--only '$(ONLY)' $(if $(KEEP),--keep) $(if $(UPJET),--upjet $(UPJET))

.PHONY: external-names
external-names: ## Read the table of known external-names anew from checkouts of upjet's providers (AWS= AZURE= GCP= CHECK=1).
	cd test && go run ./cmd/externalname --aws '$(abspath $(AWS))' --azure '$(abspath $(AZURE))' --gcp '$(abspath $(GCP))' $(if $(CHECK),--check)

.PHONY: compat
compat: ## Lose and restore a cluster with each combination of versions, and from one version into another, and write docs/compatibility.md (ONLY=v1.16,v2.0 or ONLY=v1.20-v2.3; MISSING=true: only what was never run); hours the first time.
	cd test && go run ./cmd/compat --only '$(ONLY)' $(if $(MISSING),--missing)

.PHONY: demo
demo: ## Lose a cluster and restore it, without the plugin and with it (CROSSPLANE=v2|v1.20 VELERO=v1.18|v1.17|v1.16 COUNT=10 NATIVE=1).
	cd test && go run ./cmd/demo --crossplane $(CROSSPLANE) $(if $(VELERO),--velero $(VELERO)) $(if $(COUNT),--count $(COUNT)) $(if $(NATIVE),--native)

.PHONY: stack-build
stack-build: ## Build every program of the real stack into the user's cache.
	cd test && go run ./stack/cmd/stack build

.PHONY: stack-up
stack-up: ## Start a real stack to work with, and say how (CROSSPLANE=v2|v1.20 ARGS="--clusters source,target").
	cd test && go run ./stack/cmd/stack up --crossplane $(CROSSPLANE) $(ARGS)

.PHONY: stack-plugin
stack-plugin: ## Give the plugin as it is now to the Velero of stack-up, and restart that (ARGS="--name pair").
	cd test && go run ./stack/cmd/stack plugin $(ARGS)

.PHONY: stack-down
stack-down: ## Destroy what stack-up started.
	cd test && go run ./stack/cmd/stack down $(ARGS)

.PHONY: lint
lint: ## Lint all modules, workflows and prose; the linters are built the first time, which takes minutes and a C compiler.
	@failed=0; for module in $(MODULES); do \
		echo "linting $$module"; \
		(cd $$module && go mod tidy -diff && $(GOLANGCI_LINT) run ./...) || failed=1; \
	done; \
	echo "linting .github/workflows"; $(ACTIONLINT) || failed=1; \
	echo "linting prose"; $(PROSE) || failed=1; \
	exit $$failed

.PHONY: prose
prose: ## Lint the pages in the root, docs and example with vale, which needs a C compiler to be built (CC=gcc).
	@$(PROSE)

.PHONY: format
format: ## Format all Go code.
	$(GOLANGCI_LINT) fmt

.PHONY: vuln
vuln: ## Look for known vulnerabilities that any module reaches (VULNDB=file:///folder/of/osv, for where there is no network).
	@failed=0; for module in $(MODULES); do \
		echo "looking at $$module"; \
		(cd $$module && $(GOVULNCHECK) $(if $(VULNDB),-db $(VULNDB)) ./...) || failed=1; \
	done; exit $$failed

.PHONY: fuzz
fuzz: ## Run each fuzz target for a while, until one finds something (FUZZTIME=10m FUZZ='xp|Read' PARALLEL=2).
	@log=$$(mktemp); trap 'rm -f "$$log"' EXIT; totals=; \
	for each in $$(grep -rHoE --include='*_test.go' '^func Fuzz\w+' . | sed -E 's|/[^/]+:func |:|' | grep -E '$(FUZZ)' | sort); do \
		dir=$${each%:*}; target=$${each#*:}; began=$$(date +%s); result=ok; \
		echo "fuzzing $$target in $$dir"; \
		{ (cd "$$dir" && go test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 100x -parallel $(PARALLEL) .) || echo "found in $$dir"; } 2>&1 | tee "$$log"; \
		if grep -q '^found in ' "$$log"; then result=found; fi; \
		execs=$$(sed -nE 's/.*execs: ([0-9]+).*/\1/p' "$$log" | tail -1); \
		totals="$$totals$$(printf '%-22s %-20s %12s tries %6ss  %s' "$$dir" "$$target" "$${execs:-0}" $$(($$(date +%s) - began)) $$result)\n"; \
		if [ $$result != ok ]; then break; fi; \
	done; \
	printf "$$totals"; [ -n "$$totals" ] && [ "$$result" = ok ] || { echo 'Keep what was found: git add it from testdata/fuzz below that folder.' >&2; exit 1; }

.PHONY: clean
clean: ## Remove bin/.
	rm -rf bin
