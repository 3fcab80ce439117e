# make test   every test: Go, where there are goroutines with the race detector too, a short fuzzing of every parser, then Python;
#             QUICK=1 for Go's short tests without the race detector, no fuzzing, no snippets of pages and no browser, and of python/ the fixtures alone
# make test-alone  README's commands in a fresh clone with an empty home and no reference data, the tests quick
# make tools  install the programs and servers without which tests are skipped, where this machine lets it
# make fuzz   fuzzing alone; FUZZ=10m for ten minutes a target
# make soak   what takes hours: every kill, fault and crash, all tests under the race detector, a thousand hostile configurations, ten minutes of fuzzing a target
# make lint   gofmt, go vet, staticcheck, go mod tidy, the direction of imports; ruff, mypy
# make man    manual pages of every command, into bin/man
# make vet-targets  go vet, tests included, for every system and processor that programs are released for: minutes, and part of release-check
# make test-ray   dsload.ray on clusters of two nodes on this machine: processes, workers and nodes are killed
# make test-arm64  the quick tests of what has assembly or floats, a build and a feed, by an arm64 program under qemu-user
# make release VERSION=0.1.0  programs, wheels, packages, an image, checksums and an SBOM into dist/0.1.0, published nowhere
# make tag VERSION=0.1.0  the tags by which Go finds the release, pushed nowhere
# make release-check  go vet for every target; make a release twice, compare the bytes, install and start what is in it
# make gate   instructions and peak memory of fixed workloads, compared with bench/gate/numbers.json; make gate-update counts them anew
# make vulncheck  known vulnerabilities in what released programs link, by Go's database of them; it takes minutes
# make bench  dsload and its peers at the same work, into docs/benchmarks: hours; QUICK=1 takes minutes. The peers are installed into bin/bench-venv
# make bench-go  the benchmarks of the Go packages
# make screenshots  the pictures of docs/pages.md, taken by Chromium of pages that are running
# make site   README and docs/ as a web site in bin/site, which needs no server and can be searched offline

GO          ?= go
PYTHON      ?= python3
VENV        := .venv
VENV_PYTHON  = $(abspath $(VENV))/bin/python
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
GOVULNCHECK := golang.org/x/vuln/cmd/govulncheck@v1.9.0
VULNDB      := golang.org/x/vulndb@latest
COMMIT      := $(shell git rev-parse --short=12 HEAD 2>/dev/null)
LDFLAGS     := -s -w -X main.commit=$(COMMIT)

# All packages: ./... leaves out tokenize, which is a module of its own. Go takes its packages by their import paths alone.
MODULE      := github.com/dsload/dsload
PACKAGES    := $(MODULE)/...

# Compiled code does not name its folder, so that a checkout finds in the build cache what another compiled. Compilers and vet, which end soon, spend a
# fifth less when they collect garbage more rarely; what they make is the same, and what is tested runs as it would without. Arrow, which only tests import,
# takes the standard library's JSON by a tag: the other one is the slowest package to compile.
TOOLFLAGS := -trimpath -tags=arrow_json_stdlib '-toolexec=env GOGC=400'
export GOFLAGS := $(filter-out $(TOOLFLAGS),$(shell $(GO) env GOFLAGS)) $(TOOLFLAGS)

# Python keeps what it compiles, also where the environment asks it not to, as images of Python do: tests start dozens of processes that import torch and
# transformers, each of which would take three times as long.
export PYTHONDONTWRITEBYTECODE :=

# Executions, or time, for each fuzz target in make test.
FUZZ        ?= 1000x
# Where inputs that reach new code are kept: those of make test are forgotten, those of make soak are not.
FUZZCACHE   ?= $(CURDIR)/bin/fuzz/found

# How a package's fuzz targets are built: coverage is that of the package and of those in its folder, since compiling more code anew takes far longer than
# a thousand executions. make soak counts the coverage of all code.
FUZZBUILD   ?= "-gcflags=$(MODULE)/$$dir/...=-d=libfuzzer" '-ldflags=-s -w'

# What make soak tests, and how long it fuzzes each target.
PKG         ?= $(PACKAGES)
SOAKFUZZ    ?= 10m

# What make test does, whole or quick.
QUICK       ?=
PYTESTMODE   = $(if $(QUICK),--setup-only)

# Python's two runs at once, where make keeps what each prints together.
SIDEBYSIDE   = $(if $(filter output-sync,$(.FEATURES)),-j2 --output-sync=target)

# What programs are released for: the platforms of python/build_wheel.py. s390x stands for big-endian machines: the program refuses them at its start, the libraries work there.
TARGETS := $(shell sed -nE 's|^    \("(\w+)", "(\w+)"\): ".*|\1/\2|p' python/build_wheel.py)
ENDIAN  := linux/s390x

# Without inlining and DWARF compilers take a third less: for what is compiled for its types alone, and for a program that only refuses to run (release/check.py).
export TYPESONLY := -gcflags=all=-l -dwarf=false

# .ci/run runs tools, lint, gate, test-arm64, test-alone and test.
.PHONY: all build tools test test-alone test-go fuzz soak test-python test-clients test-package test-ray lint lint-go vet-targets lint-python test-arm64 release tag release-check gate gate-update vulncheck bench bench-go man screenshots site wheel clean

all: build

build:
	CGO_ENABLED=0 $(GO) build -ldflags "$(LDFLAGS)" -o bin/dsload ./cmd/dsload

man: build
	rm -rf bin/man && bin/dsload help --man bin/man

# Python's tests wait more than they compute: they run beside Go's, and what they print comes after it.
test:
	@mkdir -p bin; $(MAKE) --no-print-directory $(SIDEBYSIDE) test-python >bin/test-python.log 2>&1 & python=$$!; \
	trap 'kill $$python 2>/dev/null' EXIT; \
	$(MAKE) --no-print-directory test-go $(if $(QUICK),,fuzz); go=$$?; \
	wait $$python; failed=$$?; trap - EXIT; cat bin/test-python.log; exit $$((go | failed))

tools:
	@.ci/tools

test-alone: $(VENV)/installed
	@.ci/alone

# Packages that start goroutines run once more under the race detector, with the quick tests: it makes everything five to ten times as slow, and what the
# others try in more places starts no other goroutines. internal/archtest checks the list. On a busy machine a package may take longer than Go's default of
# ten minutes. Vet has seen them in the run before.
RACED := ./cmd/dsload ./internal/bench ./internal/budget ./internal/dataset ./internal/doctor ./internal/ingest ./internal/ingest/command \
  ./internal/ingest/filter ./internal/ingest/merge ./internal/ingest/plan ./internal/ingest/read ./internal/ingest/setup ./internal/ingest/source ./internal/ingest/source/columnar ./internal/ingest/source/decompress ./internal/notify ./internal/page \
  ./internal/remote ./internal/remote/remotetest ./internal/serve ./internal/serve/feed ./internal/store \
  ./internal/textcache ./loader ./shard ./tokenize

test-go:
	$(GO) test $(if $(QUICK),-short) -timeout 40m $(GOTESTFLAGS) $(PACKAGES)
	$(if $(QUICK),,CGO_ENABLED=1 $(GO) test -race -short -vet=off -gcflags=all=-dwarf=false -timeout 40m $(GOTESTFLAGS) $(RACED:./%=$(MODULE)/%))

# Every fuzz target of every package. Each package's are built once, with coverage, and run one after another: go test -fuzz links for every target anew.
# Only failing inputs are minimized: for large inputs, minimizing would take all the time.
fuzz:
	@mkdir -p bin/fuzz; if [ "$(FUZZCACHE)" = $(CURDIR)/bin/fuzz/found ]; then rm -rf bin/fuzz/found; fi
	@set -e; for dir in $$(git ls-files '*_test.go' | xargs grep -lE '^func Fuzz' | xargs -n 1 dirname | sort -u); do \
	  (cd $$dir && $(GO) test -c $(FUZZBUILD) -o $(CURDIR)/bin/fuzz/test .); \
	  for target in $$(sed -nE 's/^func (Fuzz[A-Za-z0-9_]*).*/\1/p' $$dir/*_test.go); do \
	    echo "$$dir $$target"; \
	    (cd $$dir && $(CURDIR)/bin/fuzz/test -test.run '^$$' -test.fuzz "^$$target\$$" -test.fuzztime $(FUZZ) -test.fuzzminimizetime 1x \
	      -test.fuzzcachedir $(FUZZCACHE)/$$dir) >bin/fuzz/log 2>&1 || { cat bin/fuzz/log; exit 1; }; \
	    grep execs: bin/fuzz/log | tail -n 1; \
	  done; \
	done

# What make test has no time for: a kill, a fault or a crash at every place, a thousand hostile configurations, ten minutes of fuzzing for each target.
# Random values differ in each run; DSLOAD_SEED repeats one. PKG=./internal/... and SOAKFUZZ=1m shorten it.
soak: $(VENV)/installed
	@targets=$$(git ls-files '*_test.go' | xargs grep -hE '^func Fuzz' | wc -l); \
	echo "make soak: the tests take one to two hours on two cores, then $$targets fuzz targets $(SOAKFUZZ) each; every part says how long it took"
	@start=$$(date +%s); DSLOAD_SOAK=1 $(GO) test -count 1 -timeout 24h $(GOTESTFLAGS) $(PKG) || exit 1; echo "tests: $$(( $$(date +%s) - start )) s"
	@start=$$(date +%s); CGO_ENABLED=1 $(GO) test -race -count 1 -timeout 24h $(GOTESTFLAGS) $(PKG) || exit 1; \
	echo "tests under the race detector: $$(( $$(date +%s) - start )) s"
	@start=$$(date +%s); DSLOAD_SOAK=1 $(MAKE) --no-print-directory test-python test-ray || exit 1; echo "Python's tests: $$(( $$(date +%s) - start )) s"
	@start=$$(date +%s); $(MAKE) --no-print-directory fuzz FUZZ=$(SOAKFUZZ) FUZZBUILD=-fuzz=Fuzz FUZZCACHE=$$($(GO) env GOCACHE)/fuzz/dsload || exit 1; \
	echo "fuzzing: $$(( $$(date +%s) - start )) s"

test-python: test-clients test-package

test-clients: build $(VENV)/installed
	DSLOAD=$(CURDIR)/bin/dsload $(VENV_PYTHON) -m pytest -q tests_clients $(if $(QUICK),--ignore=tests_clients/docs --ignore=tests_clients/pages)
	$(VENV_PYTHON) -m pytest -q release bench

test-package: build $(VENV)/installed
	cd python && DSLOAD=$(CURDIR)/bin/dsload $(VENV_PYTHON) -m pytest -q $(PYTESTMODE)

# Ray lies in a folder of its own, so that make test stays without it: these clusters take five minutes.
test-ray: build $(VENV)/installed
	$(VENV_PYTHON) -m pip install -q --upgrade --target bin/ray "ray>=2.9"
	cd python && DSLOAD=$(CURDIR)/bin/dsload PYTHONPATH=$(CURDIR)/bin/ray $(VENV_PYTHON) -m pytest -q -m ray

# What the Python tests need goes into a local environment, nowhere else: readers of Arrow, torch for the CPU, linters. Of its
# 16,000 modules Python compiles those that are imported; pip would compile all.
$(VENV)/installed: export PIP_COMPILE = 0
$(VENV)/installed: tests_clients/requirements.txt python/tests/install_torch.py
	$(PYTHON) -m venv $(VENV)
	$(VENV_PYTHON) -m pip install -q -r tests_clients/requirements.txt
	$(VENV_PYTHON) python/tests/install_torch.py
	touch $@

lint: lint-go lint-python

# Vet and staticcheck see what this system compiles. That the rest compiles elsewhere, tests included, internal/archtest checks from source in make test; what
# vet finds besides in the files of other systems it finds in release-check, and in arm64's assembly in test-arm64.
lint-go:
	$(GO) vet $(PACKAGES)
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "gofmt: $$out"; exit 1; fi
	GOGC=300 $(GO) run $(STATICCHECK) $(PACKAGES)
	$(GO) mod tidy -diff
	$(GO) -C tokenize mod tidy -diff
	$(GO) test -short ./internal/archtest

# Vet compiles everything that a package imports, for its types; on linux/amd64 and linux/arm64 tests run the same code.
vet-targets:
	@set -e; test -n "$(TARGETS)"; for target in $(TARGETS) $(ENDIAN); do \
	  case $$target in linux/a*) flags= ;; *) flags="$$TYPESONLY" ;; esac; \
	  echo "GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) vet $$flags $(PACKAGES)"; \
	  GOOS=$${target%/*} GOARCH=$${target#*/} $(GO) vet $${flags:+"$$flags"} $(PACKAGES); \
	done

lint-python: $(VENV)/installed
	cd python && $(VENV_PYTHON) -m ruff check . && $(VENV_PYTHON) -m ruff format --check .
	$(VENV_PYTHON) -m ruff check --isolated --select E,F,W --ignore E501,E701,E702,E741,F841 tests_clients bench release
	cd python && $(VENV_PYTHON) -m mypy

test-arm64:
	@release/test-arm64.sh

# The gate counts by functions, whose names a released program does not have.
gate gate-update:
	CGO_ENABLED=0 $(GO) build -ldflags "-w" -o bin/gate/dsload ./cmd/dsload
	@$(PYTHON) bench/gate/gate.py bin/gate/dsload $(if $(filter gate-update,$@),--update)

# The database is that of vuln.go.dev, made from the module in which it is kept: a machine that reaches a module proxy needs nothing else.
vulncheck:
	@set -e; export GOTOOLCHAIN=$$(sed -n 's/^toolchain //p' go.mod); rm -rf bin/vulndb; mkdir -p bin; \
	$(GO) mod download -json $(VULNDB) >bin/vulndb.json; folder=$$(sed -n 's/^\t"Dir": "\(.*\)",*$$/\1/p' bin/vulndb.json); \
	$(GO) run $(subst @,/cmd/indexdb@,$(VULNDB)) -vulns "$$folder/data/osv" -out bin/vulndb; \
	$(GO) run $(GOVULNCHECK) -db "file://$(CURDIR)/bin/vulndb" $(PACKAGES)

bench: build
	$(PYTHON) bench/run.py $(if $(QUICK),--quick) $(BENCHFLAGS)

bench-go:
	$(GO) test -run '^$$' -bench . -benchmem $(MODULE)/tokenize/... ./shard/... ./internal/...

screenshots: build $(VENV)/installed
	$(VENV_PYTHON) tests_clients/pages/screenshots.py bin/dsload docs

# The site needs one package, not what the tests need.
bin/site-venv/installed: tests_clients/requirements.txt
	$(PYTHON) -m venv bin/site-venv
	bin/site-venv/bin/python -m pip install -q --disable-pip-version-check "$$(grep ^mkdocs-material== tests_clients/requirements.txt)"
	touch $@

site: bin/site-venv/installed
	NO_MKDOCS_2_WARNING=1 bin/site-venv/bin/python -m mkdocs build --strict --quiet
	@echo bin/site/index.html

wheel:
	$(PYTHON) python/build_wheel.py

release:
	@$(PYTHON) release/release.py "$(VERSION)"

tag:
	@$(PYTHON) release/tag.py "$(VERSION)"

release-check: $(VENV)/installed vet-targets
	@$(VENV_PYTHON) release/check.py

clean:
	rm -rf bin $(VENV) dist
