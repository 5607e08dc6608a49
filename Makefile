SHELL := /bin/bash
# Sightline. `make` lists the targets; each sets up what it needs on a machine with Go and Node.

GO        ?= go
DATA      ?= .data
LISTEN    ?= 127.0.0.1:8080
FUZZTIME  ?= 20s
ROUNDS    ?= 5
SHARED    ?= ../shared
PACKAGES  ?= ./...
RUN       ?= .
VERSION   ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
RELEASE   ?=
LDFLAGS   := -s -w -X github.com/sightline-dev/sightline/origin/server.Version=$(VERSION)

WAZERO      := github.com/tetratelabs/wazero/cmd/wazero@v1.12.0
GOFUMPT     := mvdan.cc/gofumpt@v0.9.2
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
SBOM        := github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

# Lists of packages. TestLists checks that each exists and has tests.

# make nightly fails if the tests of a package that is not a program cover a smaller share of its statements. The tests of other packages run
# most of the code of these.
COVER     := 85
UNCOVERED := core core/api/... core/cpu/asm/arm64 core/predict/raster/exif core/predict/raster/raw core/predict/raster/vp8l core/testkit edge/node \
	origin/program origin/server origin/server/cli origin/server/cluster/member origin/server/control origin/server/hosted origin/server/system \
	web/openapi/describe web/runtime/test

# The packages whose tests take longest start first, and the others fill their pauses.
FIRST   := edge origin/program wasm/host wasm/simd web/journeys web/runtime/test
ORDERED  = $$(first=$$($(GO) list $(FIRST:%=./%)); all=$$($(GO) list $(PACKAGES) | tac); grep -xF "$$first" <<<"$$all"; grep -vxF "$$first" <<<"$$all")

# The packages that compute.
COMPUTE := core/cpu core/index/... core/jsonio/... core/predict/... core/train/...

# The module's other packages decide: their functions are compiled without inlined calls, which makes the module smaller. So are the readers of
# headers. Predictions and calls take as long as before.
INLINED := $(COMPUTE) core/kv/memkv core/log/field
HEADERS := core/predict/raster/heif core/predict/raster/jxl core/predict/raster/raw
SMALL   := $(foreach p,core/... sync/... wasm/...,-gcflags='./$(p)=-dwarf=false -l') $(foreach p,$(INLINED),-gcflags='./$(p)=-dwarf=false') \
	$(foreach p,$(HEADERS),-gcflags='./$(p)=-dwarf=false -l')

# Packages that are tested as wasip1: they compute with fractions or have code of their own there. The others run in the module itself, where
# random programs, transcripts and copies must give the native answers and digests.
ASWASM := models core/blob core/catalog $(COMPUTE)

# Packages that are tested as arm64: all that compute, encode or store bytes. These packages of core only call them. The tests of wasm/host and
# web/runtime compare their answers.
CALLERS := core core/api/... core/auth core/ingest core/log/field/gen core/partition core/reembed core/search core/training
ASARM64  = ./models ./sync/compress ./sync/wire $$($(GO) list ./core/... | grep -vxFf <($(GO) list $(CALLERS:%=./%)))

# Of these, the packages that are tested on processors of arm64 with other instructions, too: with dot products and without.
KERNELS := core/cpu core/index/hnsw/kernel core/predict/nn/... core/predict/raster/... core/train/kernel

# The sources of the pages.
PAGES := $(shell find web/src web/runtime/src web/messages web/public web/samples web/tools web/index.html web/package.json web/*.ts web/project.inlang/settings.json \
	web/openapi/openapi.json models/general-v1.3/names -type f -not -path 'web/src/words/*' -not -name v2.d.ts 2>/dev/null)

# The sources of the module and of the runtime of pages.
MODULE  := $(shell find core sync wasm/guest wasm/abi -name '*.go' -not -name '*_test.go' 2>/dev/null) go.mod
RUNTIME := $(shell find web/runtime -type f -not -path '*/served/*' -not -path '*/test/*' -not -path '*/node_modules/*' 2>/dev/null)

# Every go command compiles with the same flags, so that programs, tests and tools share what is compiled. Nothing here reads DWARF,
# which costs a sixth of the time.
ifeq (,$(findstring -trimpath,$(GOFLAGS)))
export GOFLAGS := $(strip $(GOFLAGS) -trimpath '-gcflags=all=-dwarf=false')
endif
export CGO_ENABLED := 0

.PHONY: help run demo shots build release wasm web models quick test nightly laws elsewhere soak timed wasip1 arm64 instructions race fuzz bench check generate clean
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## /\1\t/' | expand -t 14

run: build ## set everything up, start an origin and an edge with sample pictures, and open the pages
	bin/sightline demo --open --listen $(LISTEN) --data $(DATA)

demo: build ## the same with two edges
	bin/sightline demo --open --edges 2 --listen $(LISTEN) --data $(DATA)

# A font for Japanese. Without it, a browser draws boxes, which are narrower than the characters.
CJK := /usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc fonts-noto-cjk

shots: build ## pictures of the pages in the states that the design has drawn, into .cache/shots, and web/screenshot.png
	@.ci/need chromium chromium && .ci/need $(CJK)
	cd web/journeys && CHROMIUM=$$(command -v chromium chromium-browser google-chrome | head -1) node shots.js ../../bin/sightline ../../.cache/shots $$([ -d ../../$(SHARED)/design/web/shots ] && echo ../../$(SHARED)/design/web/shots)
	@case "$${STATES:-screenshot}" in *screenshot*) cp .cache/shots/screenshot.png web/screenshot.png;; esac

# The demonstration and the user's other servers need not compile the modules that make has compiled. The decoder's is compiled while the
# second program is built. Without a folder for the result, the servers compile.
run demo: export PRECOMPILE := yes

build: web wasm bin/ffmpreg.wasm.gz bin/jpegxl.wasm.gz ## the two programs and the decoders of videos and pictures, into bin/
	@echo 'build: bin/sightline'
	@$(GO) build -ldflags '$(LDFLAGS)' -o bin/sightline ./origin
	@if [ -n "$$PRECOMPILE" ]; then bin/sightline precompile >/dev/null & fi; \
	echo 'build: bin/sightline-edge'; \
	$(GO) build -ldflags '$(LDFLAGS)' -o bin/sightline-edge ./edge && \
	if [ -n "$$PRECOMPILE" ]; then bin/sightline-edge precompile >/dev/null || echo 'build: the modules are not compiled'; wait; fi

# An archive has both programs, the decoders of videos and pictures, the licences, and an SBOM of each program and of the pages. A version is a
# tag vX.Y.Z of the commit, or VERSION=vX.Y.Z.
release: ## archives of the programs for linux on amd64 and arm64, and their SHA-256 sums, into bin/release
	@[[ '$(VERSION)' == v* ]] && grep -qF '## [$(VERSION:v%=%)]' CHANGELOG.md || { \
		echo 'release: CHANGELOG.md has no section for version $(VERSION): add it, and tag the commit as vX.Y.Z or pass VERSION=vX.Y.Z' >&2; exit 1; }
	@$(MAKE) --no-print-directory RELEASE=1 build
	@rm -rf bin/release && mkdir -p bin/release
	@GOBIN=$(CURDIR)/bin $(GO) install $(SBOM)
	@for arch in amd64 arm64; do \
		name=sightline-$(VERSION)-linux-$$arch; dir=bin/release/$$name; mkdir $$dir || exit 1; \
		for program in origin:sightline edge:sightline-edge; do \
			echo "release: $$name, $${program#*:}"; \
			GOOS=linux GOARCH=$$arch $(GO) build -ldflags '$(LDFLAGS)' -o $$dir/$${program#*:} ./$${program%:*} || exit 1; \
			bin/cyclonedx-gomod bin -json -licenses -version $(VERSION) -output $$dir/$${program#*:}.cdx.json $$dir/$${program#*:} 2>bin/release/log || { cat bin/release/log; exit 1; }; \
		done; \
		(cd web && npm sbom --omit dev --sbom-format cyclonedx) >$$dir/pages.cdx.json || exit 1; \
		cp bin/ffmpreg.wasm.gz bin/ffmpreg.LICENSE bin/jpegxl.wasm.gz bin/jpegxl.LICENSE LICENSE NOTICE CHANGELOG.md $$dir && \
		tar -C bin/release --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$$(git log -1 --format=%ct)" -cf - $$name | gzip -9n >bin/release/$$name.tar.gz && \
		rm -r $$dir || exit 1; \
	done
	@cd bin/release && rm log && sha256sum *.tar.gz | tee SHA256SUMS

wasm: $(patsubst %,wasm/packed/%.wasm.br,guest kernels kernels-relaxed) ## the module that edges and pages run, into wasm/dist, and compressed into wasm/packed

wasm/packed/%.br: wasm/dist/% $(wildcard wasm/pack/*.go) $(if $(RELEASE),compress-again)
	@echo 'build: $@'
	@$(GO) run ./wasm/pack -quality $(if $(RELEASE),11,9) $< $@

wasm/dist/guest.wasm: $(MODULE) $(wildcard wasm/slim/*.go wasm/slim/cmd/*.go)
	@echo 'build: the WebAssembly module'
	@mkdir -p .cache
	@GOOS=wasip1 GOARCH=wasm $(GO) build $(SMALL) -ldflags '-s -w' -tags lent -buildmode=c-shared -o .cache/linked.wasm ./wasm/guest
	@$(GO) run ./wasm/slim/cmd .cache/linked.wasm $@

wasm/dist/kernels.wasm wasm/dist/kernels-relaxed.wasm &: $(shell find wasm/simd -name '*.go' -not -name '*_test.go' 2>/dev/null)
	@echo 'build: the modules of its kernels'
	@$(GO) run ./wasm/simd/cmd wasm/dist/kernels.wasm wasm/dist/kernels-relaxed.wasm

# A decoding module is a program of its own, FFmpeg under the GPL-3 and libjxl under the 3-Clause BSD License: it is taken out of its Go
# module, and never imported. $(call extract,constants in module.go,licence,file)
define extract
	@mkdir -p bin
	@fact() { sed -n 's/^.*'"$$1"' *= "\([^"]*\)".*/\1/p' $<; }; \
	json=$$($(GO) -C / mod download -json "$$(fact $(1)Source)") || { echo "$$json" >&2; exit 1; }; \
	dir=$$(sed -n 's/^.*"Dir": "\(.*\)".*/\1/p' <<<"$$json") && \
	sha256sum --quiet -c <<<"$$(fact $(1)SHA256)  $$dir/$(3)" && \
	install -m 644 "$$dir/$(2)" $(@:.wasm.gz=.LICENSE) && \
	install -m 644 "$$dir/$(3)" $@
endef

bin/ffmpreg.wasm.gz: origin/server/video/module.go
	@echo 'build: the decoding module of videos'
	$(call extract,module,LICENSE,embed/ffmpreg.wasm.gz)

bin/jpegxl.wasm.gz: origin/server/video/module.go
	@echo 'build: the decoding module of JPEG XL'
	$(call extract,jxl,lib/LICENSE.libjxl,lib/decode.wasm.gz)

web: ## the pages and their runtime, into web/dist and web/runtime/served/dist
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory -j2 web/dist/index.html web/runtime/served/dist/index.js; \
	else echo 'There is no Node: the programs are built without pages.' >&2; fi

web/runtime/served/dist/index.js: web/node_modules/.package-lock.json $(RUNTIME)
	@echo "build: the pages' runtime"
	@cd web/runtime && npm run --silent build && touch served/dist/index.js

.PHONY: compress-again
compress-again:

web/node_modules/.package-lock.json: web/package-lock.json web/.npmrc
	@echo 'build: npm packages'
	@cd web && npm ci --silent && touch node_modules/.package-lock.json

web/dist/index.html: web/node_modules/.package-lock.json $(PAGES)
	@echo 'build: the pages'
	@cd web && npm run --silent build

models: ## bake the bundles from $(SHARED)/model-next and measure them on $(SHARED)/eval and photos
	$(GO) run ./models/bake -from $(SHARED)/model-next -eval $(SHARED)/eval -photos $(SHARED)/photos -to models

quick: ## the laws of core and sync at their smallest size, in 3 minutes, without Node and browser
	@$(GO) run ./core/testkit/ci test -short ./core/... ./sync/...

test: build ## every law at a small size, transcripts on all hosts, the official client, four journeys: 12 minutes
	@{ .ci/need chromium chromium && .ci/need curl curl; } || test -z "$$CI"
	@$(GO) run ./core/testkit/ci test -timeout 15m $(ORDERED)

nightly: build ## everything: laws at full size, all journeys, coverage, timed tests, race detector, wasip1, arm64, fuzz: an hour
	@bad=; for part in laws timed elsewhere fuzz; do \
		began=$$SECONDS; $(MAKE) --no-print-directory $$part || bad="$$bad $$part"; \
		echo "nightly: $$part took $$(((SECONDS - began + 30) / 60)) minutes"; \
	done; test -z "$$bad" || { echo "nightly: failed:$$bad"; exit 1; }

laws: build ## all native tests at the nightly size, with their coverage
	@{ .ci/need chromium chromium && .ci/need curl curl && .ci/need $(CJK); } || test -z "$$CI"
	@command -v versitygw >/dev/null || $(GO) install github.com/versity/versitygw/cmd/versitygw@v1.8.0 # the S3 server of the tests of clusters
	@NIGHTLY=1 $(GO) run ./core/testkit/ci test -timeout 45m -cover $(ORDERED)
	@.ci/cover $(COVER) .cache/test.txt $(UNCOVERED:%=./%)
	@$(GO) test -short -cover -coverpkg=./core/api/... ./core/api > .cache/api.txt; .ci/cover $(COVER) .cache/api.txt

elsewhere: ## the race detector, wasip1 and arm64, two packages at once
	@$(MAKE) --no-print-directory -j2 FLAGS='-p 1' race wasip1 arm64

soak: ## hours of one law: make soak LAW=Kill FROM=0 starts at a seed
	@test -n "$(LAW)" || { echo 'usage: make soak LAW=Kill [FROM=seed] [N=rounds]' >&2; exit 2; }
	SOAK=1 SOAK_FROM=$(FROM) SOAK_N=$(N) $(GO) test -v -count=1 -timeout 0 -run '^Test$(LAW)' $(PACKAGES)

timed: build ## the tests that compare time or memory with a bound, alone, up to three times each
	@.ci/timed

wasip1: bin/wazero ## the tests of the packages that compute, as wasip1 under wazero
	GOOS=wasip1 GOARCH=wasm $(GO) test -vet=off -short -timeout 15m $(FLAGS) -exec "$(CURDIR)/.ci/wasip1" $(ASWASM:%=./%)

# Which file operation fails is the same on every architecture.
arm64: ## the same as arm64 under qemu, with the packages that encode or store bytes; kernels, transcripts and programs on three processors
	@.ci/need qemu-aarch64 qemu-user
	GOARCH=arm64 $(GO) test -vet=off -short -skip 'TestFault' -timeout 15m $(FLAGS) -exec 'qemu-aarch64 -cpu max' $(ASARM64)
	for cpu in neoverse-n1 cortex-a72; do \
		GOARCH=arm64 $(GO) test -vet=off -short -timeout 15m $(FLAGS) -exec "qemu-aarch64 -cpu $$cpu" $(KERNELS:%=./%) || exit 1; \
	done
	for cpu in max neoverse-n1 cortex-a72; do \
		GOARCH=arm64 $(GO) test -vet=off -short -timeout 30m -run '^(TestTranscripts|TestReleasedTranscripts)$$' -exec "qemu-aarch64 -cpu $$cpu" ./core/api || exit 1; \
	done
	.ci/arm64

instructions: ## the instructions of a prediction and of its pointwise layers on arm64 (needs gcc and qemu-user)
	@.ci/instructions

race: ## the race detector on the tests that run several goroutines (needs gcc)
	@.ci/need gcc gcc
	packages=$$($(GO) run ./core/testkit/ci concurrent) && CGO_ENABLED=1 $(GO) test -vet=off -race -short -timeout 30m $(FLAGS) $$packages

fuzz: ## each fuzz target for FUZZTIME
	@.ci/fuzz $(FUZZTIME)

bench: build ## ours and the peers', interleaved, as README's table (SIGHTLINE_CPU=avx2 or plain forces our kernels); and the Go benchmarks, for benchstat, into .cache/bench.txt
	@mkdir -p .cache
	cd models/compare && npm ci --ignore-scripts --silent
	$(GO) run ./models/compare -rounds $(ROUNDS)
	$(GO) test -run '^$$' -bench . -benchtime 0.3s $(PACKAGES) | tee .cache/bench.txt

scale: ## a benchmark that grows: make scale N=1000000 measures an application with so many synthetic inputs, and keeps its folder below .cache
	@test -n "$(N)" || { echo 'usage: make scale N=inputs' >&2; exit 2; }
	SCALE=$(N) $(GO) test -v -count=1 -timeout 0 -run '^TestScale$$' ./origin/program

check: ## formatting, vet (native, wasip1, arm64), staticcheck, clear wording, and that generating changes nothing
	@out=$$($(GO) run $(GOFUMPT) -l .); test -z "$$out" || { echo "gofumpt would change:"; echo "$$out"; exit 1; }
	$(GO) vet $(PACKAGES)
	GOOS=wasip1 GOARCH=wasm $(GO) vet ./core/... ./models ./sync/...
	GOARCH=arm64 $(GO) vet $(PACKAGES)
	$(GO) run $(STATICCHECK) -checks all,-ST1000 $(PACKAGES)
	$(GO) mod tidy -diff
	@if command -v node >/dev/null; then .ci/plain; fi
	@if command -v npm >/dev/null; then $(MAKE) --no-print-directory web/node_modules/.package-lock.json && cd web && npm run --silent check; fi
	@tables=$$(git grep -l '^<!-- fields: ' -- '*.md'); before=$$(sha256sum $$tables); $(MAKE) --no-print-directory generate || exit 1; \
	test "$$before" = "$$(sha256sum $$tables)" || { echo "generated tables were out of date: $$tables"; exit 1; }
	@git diff --exit-code -- $$(git grep -lE '^// Code generated .* DO NOT EDIT' -- '*.go' '*.s' '*.ts') || { echo 'generated files are out of date'; exit 1; }

generate: ## write the generated files again
	$(GO) generate $(PACKAGES)

bin/wazero:
	GOBIN=$(CURDIR)/bin $(GO) install $(WAZERO)

clean: ## remove what was built
	rm -rf bin .cache origin/conformance/node_modules web/node_modules web/src/words web/src/v2.d.ts
	find web/dist web/runtime/served/dist wasm/dist wasm/packed -mindepth 1 -not -name .gitignore -delete
