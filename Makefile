SHELL := /bin/bash
# Sightline. `make` lists the targets; each sets up what it needs on a machine with Go and Node.

GO        ?= go
DATA      ?= .data
LISTEN    ?= 127.0.0.1:8080
FUZZTIME  ?= 20s
FROM      ?= 0
ROUNDS    ?= 5
SHARED    ?= ../shared
PACKAGES  ?= ./...
RUN       ?= .
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS   := -s -w -X github.com/sightline-dev/sightline/origin/command.version=$(VERSION)

WAZERO      := github.com/tetratelabs/wazero/cmd/wazero@v1.12.0
GOFUMPT     := mvdan.cc/gofumpt@v0.9.2
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2

# What answers hostile bytes or keeps data must be covered to this share of its statements (goal G26).
COVERED := core/api core/auth core/blob core/blob/pack core/catalog core/fold core/index core/index/hnsw core/ingest core/jsonio core/kv core/kv/journal core/kv/memkv \
	core/kv/pebblekv core/log core/log/field core/partition core/predict/onnx core/predict/raster core/predict/raster/jpg core/search \
	core/train core/train/kernel core/training origin/account origin/certificate origin/console origin/data origin/fetch origin/httpd \
	origin/link origin/release origin/token sync/feed sync/lines sync/press sync/release sync/replica sync/selftest sync/wire wasm/abi \
	wasm/guest/instance wasm/guest/lent wasm/host edge/updater
COVER   := 85

# What the pages are made of.
PAGES := $(shell find web/src web/runtime/src web/messages web/public web/tools web/index.html web/package.json web/*.ts web/project.inlang/settings.json \
	web/openapi/openapi.json models/general-v1.3/names -type f -not -path 'web/src/words/*' -not -name v2.d.ts 2>/dev/null)

# What the module is made of, and what pages run it with.
MODULE  := $(shell find core sync wasm/guest wasm/abi -name '*.go' -not -name '*_test.go' 2>/dev/null) go.mod
RUNTIME := $(shell find web/runtime -type f -not -path '*/served/*' -not -path '*/test/*' -not -path '*/node_modules/*' 2>/dev/null)

# They hold answers to times, so that nothing else runs beside them; and where they are.
TIMED    := ^Test(G13|G16|G17|G18|Runaway)
TIMED_IN := ./origin/command ./edge

# What takes longest begins first, and the rest fills its pauses.
FIRST := /(web/journeys|edge|origin/command|web/runtime/test|wasm/(host|simd))$$

# What is also tested on other architectures: all that computes, encodes or keeps bytes. What only calls that has no code of its
# own for any of them, and its answers are compared where the module is (wasm/host, web/runtime).
ELSEWHERE = ./models $$($(GO) list ./core/... | grep -vE '/core$$|/core/(api|auth|ingest|partition|renew|search|training)(/|$$)') ./sync/lines ./sync/press ./sync/wire

# Of those, what is tested as wasip1: what computes with fractions or has code of its own there. The others run in the module itself,
# where random programs, transcripts and copies have the native answers and digests (wasm/host, web/runtime).
ASWASM := ./models ./core/blob ./core/catalog ./core/cpu ./core/index/... ./core/jsonio/... ./core/predict/... ./core/train/...

# What starts goroutines or is used by several at once, in the packages or in their tests; of the commands most run one at a time.
CONCURRENT = ./core ./core/api ./core/blob/... ./core/index ./core/index/hnsw ./core/kv/... ./core/log ./core/partition ./sync/feed ./edge/node ./edge/keeper \
	$(shell $(GO) list ./origin/... | grep -vE '/origin/(collection|command|conformance|release)$$')

# Long tests among them that start no goroutine, in which the detector has nothing to see.
SINGLE := TestCopiesLong|TestG21ChurnKeepsRecall|TestImportsPointInward|TestPublicAgainstOracles

export CGO_ENABLED := 0

.PHONY: help run demo shots build wasm web models test test-native test-race test-wasm test-arm64 race race-packages race-programs fuzz bench soak check generate clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 14

run: build ## set everything up, start an origin and an edge with sample pictures, and open the pages
	bin/sightline demo --open --listen $(LISTEN) --data $(DATA)

demo: build ## the same with two edges
	bin/sightline demo --open --edges 2 --listen $(LISTEN) --data $(DATA)

shots: build ## pictures of the pages in the states that the design has drawn, into .cache/shots
	@.ci/need chromium chromium
	cd web/journeys && CHROMIUM=$$(command -v chromium chromium-browser google-chrome | head -1) node shots.js ../../bin/sightline ../../.cache/shots $$([ -d ../../$(SHARED)/design/web/shots ] && echo ../../$(SHARED)/design/web/shots)

build: wasm web ## the binaries, into bin/
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/sightline ./origin
	$(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/sightline-edge ./edge

wasm: wasm/dist/guest.wasm wasm/dist/kernels.wasm ## the module that edges and pages run, into wasm/dist, where something has changed since

wasm/dist/guest.wasm: $(MODULE)
	GOOS=wasip1 GOARCH=wasm $(GO) build -trimpath -ldflags '-s -w' -tags lent -buildmode=c-shared -o $@ ./wasm/guest

wasm/dist/kernels.wasm: $(shell find wasm/simd -name '*.go' -not -name '*_test.go' 2>/dev/null)
	$(GO) run ./wasm/simd/cmd $@

web: ## the pages and their runtime, into web/dist and web/runtime/served/dist, where something has changed since
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory -j2 web/dist/index.html web/runtime/served/dist/index.js; \
	else echo 'no Node here: the pages are left as they are' >&2; fi

web/runtime/served/dist/index.js: web/node_modules/.package-lock.json wasm/dist/guest.wasm wasm/dist/kernels.wasm $(RUNTIME)
	cd web/runtime && npm run --silent build && touch served/dist/index.js

web/node_modules/.package-lock.json: web/package-lock.json web/.npmrc
	cd web && npm ci --silent && touch node_modules/.package-lock.json

web/dist/index.html: web/node_modules/.package-lock.json $(PAGES)
	cd web && npm run --silent build

models: ## bake the bundles from $(SHARED)/model and measure them on $(SHARED)/eval and photos
	$(GO) run ./models/bake -from $(SHARED)/model -eval $(SHARED)/eval -photos $(SHARED)/photos -to models

# Those of other architectures and under the race detector hold nothing to times: two packages at once, of any of them.
test: test-native ## all tests
	@$(MAKE) --no-print-directory -j2 FLAGS='-p 1' race-packages test-wasm race-programs test-arm64
	@$(MAKE) --no-print-directory fuzz

test-native: wasm web ## the tests of this machine's own architecture, with the coverage that G26 asks for
	@{ .ci/need chromium chromium && .ci/need curl curl; } || test -z "$$CI"
	@mkdir -p .cache
	@all=$$($(GO) list $(PACKAGES) | tac); set -o pipefail; $(GO) test -vet=off -timeout 30m -cover -skip '$(TIMED)' \
		$$(grep -E '$(FIRST)' <<<"$$all") $$(grep -vE '$(FIRST)' <<<"$$all") | tee .cache/test.txt
	$(GO) test -vet=off -timeout 15m -p 1 -cover -run '$(TIMED)' $(TIMED_IN)
	@.ci/cover $(COVER) .cache/test.txt $(COVERED)

test-wasm: bin/wazero ## the tests of what computes as wasip1 under wazero
	GOOS=wasip1 GOARCH=wasm $(GO) test -vet=off -short -timeout 15m $(FLAGS) -exec "$(CURDIR)/.ci/wasip1" $(ASWASM)

# Which file operation fails (G2, G3) is the same everywhere.
test-arm64: ## the same as arm64 under qemu, with what only encodes or keeps bytes
	@.ci/need qemu-aarch64 qemu-user
	GOARCH=arm64 $(GO) test -vet=off -short -skip 'TestG[23]' -timeout 15m $(FLAGS) -exec qemu-aarch64 $(ELSEWHERE)

test-race: ## the race detector on what runs concurrently
	@$(MAKE) --no-print-directory -j2 FLAGS='-p 1' race-packages race-programs

race-packages:
	@$(MAKE) --no-print-directory race SKIP='^($(SINGLE))$$$$' PACKAGES='$(CONCURRENT)'

race-programs:
	@$(MAKE) --no-print-directory race PACKAGES='./origin/command ./wasm/host' RUN='TestG|Many|OneServer|Life|Interrupted|Another|Copies|Watches|Backup|Inputs|Stalled|Hosted|ACME|Serve|People|Fleet|Swap|Idle|Strangers|Replaced|Detach|GivenUp|NoTime|LookedAfter|Networks'

race: ## all tests with the race detector (needs cgo)
	@.ci/need gcc gcc
	CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m $(FLAGS) $(if $(SKIP),-skip '$(SKIP)') -run '$(RUN)' $(PACKAGES)

fuzz: ## each fuzz target for FUZZTIME
	@.ci/fuzz $(FUZZTIME)

bench: build ## ours and the peers', interleaved, with ratios; and the Go benchmarks, for benchstat, into .cache/bench.txt
	@mkdir -p .cache
	cd models/peers && npm ci --ignore-scripts --silent
	$(GO) run ./models/peers -rounds $(ROUNDS)
	$(GO) test -run '^$$' -bench . -benchtime 0.3s $(PACKAGES) | tee .cache/bench.txt

soak: ## tier N of one goal: make soak G=G11 FROM=0 goes on from a seed
	@test -n "$(G)" || { echo 'usage: make soak G=G11 [FROM=0] [N=rounds]' >&2; exit 2; }
	SOAK=1 SOAK_FROM=$(FROM) SOAK_N=$(N) $(GO) test -v -count=1 -timeout 0 -run 'Test$(G)($$|[^0-9])' $(PACKAGES)

check: ## formatting, vet (native, wasip1, arm64), staticcheck, and that generating changes nothing
	@out=$$($(GO) run $(GOFUMPT) -l .); test -z "$$out" || { echo "gofumpt would change:"; echo "$$out"; exit 1; }
	$(GO) vet $(PACKAGES)
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./core/... ./models ./sync/...
	GOARCH=arm64 $(GO) vet $(PACKAGES)
	$(GO) run $(STATICCHECK) -checks all,-ST1000 $(PACKAGES)
	$(GO) mod tidy -diff
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory web/node_modules/.package-lock.json && cd web && npm run --silent check; fi
	$(MAKE) --no-print-directory generate
	@git diff --exit-code -- $$(git grep -lE '^// Code generated .* DO NOT EDIT' -- '*.go' '*.s') || { echo 'generated files are out of date'; exit 1; }

generate: ## write the generated files again
	$(GO) generate $(PACKAGES)

bin/wazero:
	GOBIN=$(CURDIR)/bin $(GO) install $(WAZERO)

clean: ## remove what was built
	rm -rf bin .cache origin/conformance/node_modules web/node_modules web/src/words web/src/v2.d.ts
	find web/dist web/runtime/served/dist wasm/dist -mindepth 1 -not -name .gitignore -delete
