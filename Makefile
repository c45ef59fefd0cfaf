# make run     install what is missing, build, run the demo
# make test    install what is missing, then every test against private servers
# make fairness  the tables of the README's How fair is it
# make soak    ten times as many random sequences against the scheduling rules as make test
# make lint    formatting, linters, drift of generated code
# The product needs Go, PostgreSQL 15+ and redis-server 7+; .ci/install adds what is missing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := build

# One set of flags everywhere: another set would build everything twice.
export GOFLAGS := -buildvcs=false
BUILD := .build
BIN := $(BUILD)/bin
# Test packages at a time: each holds connections to the one test server.
TEST_P ?= $(shell n=$$(nproc 2>/dev/null || echo 2); echo $$(( n < 4 ? n : 4 )))
TEST_TIMEOUT ?= 30m
PACKAGES ?= ./...

hash = $(firstword $(shell cat .tools/$(1)/go.mod .tools/$(1)/go.sum | sha256sum | cut -c1-12))
GOLANGCI := $(BIN)/golangci-lint-$(call hash,golangci-lint)
SQLC := $(BIN)/sqlc-$(call hash,sqlc)

.PHONY: run build fairness test lint generate services install-run install-test install-build drift
run: install-run build
	@exec $(BUILD)/fairlane demo

build: install-build
	@mkdir -p $(BUILD)
	go build -o $(BUILD)/fairlane .

fairness: build
	@$(BUILD)/fairlane simulate fairness

# Tests append figures (one line each) to the file that FAIRLANE_TEST_FIGURES names.
test: install-test
	@mkdir -p $(BIN)
	@go build -o $(BIN)/services ./store/storetest/services
	@rm -f $(BUILD)/figures.txt
	@code=0; FAIRLANE_TEST_FIGURES=$(CURDIR)/$(BUILD)/figures.txt $(BIN)/services -- \
		go test -race -count=1 -p $(TEST_P) -parallel 4 -timeout $(TEST_TIMEOUT) $(PACKAGES) || code=$$?; \
	if [ -s $(BUILD)/figures.txt ]; then echo; echo "figures:"; sort $(BUILD)/figures.txt; fi; \
	exit $$code

# The pure rooms need no servers.
soak: install-build
	@mkdir -p $(BUILD)
	@rm -f $(BUILD)/figures-soak.txt
	go test -race -count=1 -timeout 30m ./control/fair -rapid.checks=10000
	FAIRLANE_SOAK=10 FAIRLANE_TEST_FIGURES=$(CURDIR)/$(BUILD)/figures-soak.txt \
		go test -race -count=1 -timeout 4h -run 'Equals|Shares|Invariant|Conserved' ./control/plan
	@sort $(BUILD)/figures-soak.txt

# Servers for tests that are run by hand: set -a; . .build/test.env; set +a; go test -race ./...
services: install-test
	@mkdir -p $(BIN)
	@go build -o $(BIN)/services ./store/storetest/services
	@exec $(BIN)/services --hold --env-file $(BUILD)/test.env

lint: install-build drift $(GOLANGCI)
	@$(GOLANGCI) run $(PACKAGES)

# Generated code must be that of its sources. sqlc takes minutes to build, so its inputs are compared by sum.
drift:
	@stale=$$(find . -name '*.go' -not -path './.*' -print0 | xargs -0 gofmt -l); \
		if [ -n "$$stale" ]; then echo "gofmt would change:"; echo "$$stale"; exit 1; fi
	@go tool templ generate -check -log-level warn || { echo "templ code is stale: run make generate"; exit 1; }
	@.ci/sqlc-inputs --check

generate: install-build $(SQLC)
	@go tool templ generate -log-level warn
	@$(SQLC) generate -f store/facts/sqlc/sqlc.yaml
	@gofmt -w store/facts/sqlc/*.go
	@.ci/sqlc-inputs --write

$(GOLANGCI):
	@echo "building golangci-lint once (some minutes)"
	@mkdir -p $(BIN) && rm -f $(BIN)/golangci-lint-*
	@cd .tools/golangci-lint && go build -o $(CURDIR)/$@ github.com/golangci/golangci-lint/v2/cmd/golangci-lint

$(SQLC):
	@echo "building sqlc once (some minutes)"
	@mkdir -p $(BIN) && rm -f $(BIN)/sqlc-*
	@cd .tools/sqlc && go build -o $(CURDIR)/$@ github.com/sqlc-dev/sqlc/cmd/sqlc

install-build install-run install-test: install-%:
	@.ci/install $*
