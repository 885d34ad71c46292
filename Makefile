# Sallyport. `make` alone prints what there is.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
export CGO_ENABLED ?= 1

TOOLS          := $(CURDIR)/.tools
BUF            := $(TOOLS)/bin/buf-1.66.0
LINT           := $(TOOLS)/bin/golangci-lint-2.15.0
JSONSCHEMA_GEN := github.com/atombender/go-jsonschema@v0.24.1
GOBUILD        := go build -trimpath

##@ Use

.PHONY: help
help: ## Print the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: bin/sallyport bin/sallyport-plugins ## Build the host and the plugins into bin/

.PHONY: bin/sallyport bin/sallyport-plugins
bin/sallyport bin/sallyport-plugins: need-go
	@CGO_ENABLED=0 $(GOBUILD) -o $@ ./cmd/$(notdir $@)

.PHONY: run
run: build ## Serve on 127.0.0.1:8080 with SQLite under ./var
	@bin/sallyport serve --data ./var --in-tree bin/sallyport-plugins

.PHONY: demo
demo: build need-node ## Run the main job end to end on scratch data; loopback only
	@go run ./core/e2e/demo -bin bin -repo .

##@ Check

.PHONY: test
test: need-go need-node need-postgres ## Run every test: units, store on both databases, real plugin processes, scripts
	@.ci/test

.PHONY: browser
browser: build need-chromium ## Drive the pages in Chromium and take screenshots into var/screens
	@go test -count=1 -tags browser ./core/e2e/browser/

.PHONY: clients
clients: need-go need-node ## Let the official TypeScript clients and the Inspector talk to the host
	@mkdir -p .tools/clients && cp core/e2e/clients/package.json .tools/clients/ && cd .tools/clients && npm install --no-audit --no-fund --loglevel=error >/dev/null || true
	@go test -count=1 -tags clients ./core/e2e/clients/

.PHONY: crash-test
crash-test: need-go need-postgres ## Kill the host at its fault points; the provider's ledger is the oracle
	@.ci/pg go test -count=1 -timeout 20m -tags faults ./core/execute/ ./core/e2e/crash/

.PHONY: bench
bench: build need-postgres ## Measure against rivals in the same run; prints a table of ratios
	@.ci/pg go run ./core/e2e/bench

.PHONY: lint
lint: $(LINT) ## Run the linters, import rules included
	@$(LINT) run ./...

.PHONY: vet
vet: need-go ## Run go vet
	@go vet ./...

.PHONY: verify
verify: need-go ## Fail when generated files are stale
	@before=$$(git status --porcelain; git diff); $(MAKE) --no-print-directory gen; after=$$(git status --porcelain; git diff); \
	if [ "$$before" != "$$after" ]; then echo "generated files are stale: run 'make gen' and commit"; git status --short; exit 1; fi

##@ Change

.PHONY: gen
gen: gen-types gen-proto gen-docs ## Generate Go types from schemas, protocol stubs and state drawings

.PHONY: gen-types
gen-types: need-go
	@go run $(JSONSCHEMA_GEN) $(GEN_FLAGS) -p core -o core/types_gen.go schemas/resource/*.json
	@go run $(JSONSCHEMA_GEN) $(GEN_FLAGS) -p schemas -o schemas/meta_gen.go schemas/meta/*.json
	@gofmt -w core/types_gen.go schemas/meta_gen.go

GEN_FLAGS := --only-models --tags json --struct-name-from-title --capitalization ID --capitalization URL --capitalization SHA256

.PHONY: gen-proto
gen-proto: $(BUF)
	@cd sdk/proto && $(BUF) generate

.PHONY: gen-docs
gen-docs: need-go
	@go run ./core/sim/statesdoc

.PHONY: fmt
fmt: need-go ## Format the code
	@gofmt -w $$(git ls-files '*.go')

.PHONY: clean
clean: ## Remove what was built
	@rm -rf bin

$(BUF): | need-go
	@echo "fetching buf (once)"; GOBIN=$(TOOLS)/tmp go install github.com/bufbuild/buf/cmd/buf@v1.66.0 && mkdir -p $(dir $@) && mv $(TOOLS)/tmp/buf $@

$(LINT): | need-go
	@echo "fetching golangci-lint (once; this compiles it)"; GOBIN=$(TOOLS)/tmp go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 && mkdir -p $(dir $@) && mv $(TOOLS)/tmp/golangci-lint $@

.PHONY: need-go need-node need-postgres need-chromium
need-go need-node need-postgres need-chromium:
	@.ci/need $(patsubst need-%,%,$@)
