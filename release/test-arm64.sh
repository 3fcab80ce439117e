#!/usr/bin/env bash
# Runs arm64 code on this machine, under qemu-user: the quick tests of what has assembly or floats, and a build and a feed whose bytes are those of this
# machine's own program. Takes minutes; needs qemu-user (apt-get install qemu-user).
set -euo pipefail
cd "$(dirname "$0")/.."
for program in qemu-aarch64 curl; do
  command -v "$program" >/dev/null || { echo "test-arm64 needs $program: apt-get install qemu-user curl" >&2; exit 1; }
done
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
export CGO_ENABLED=0

# build PROCESSOR builds a program for a processor.
build() { GOARCH=$1 go build -o "$scratch/$1" ./cmd/dsload; }

# fed NAME COMMAND... builds a dataset with a program, serves it, and keeps a stream of it.
fed() {
  local name=$1
  shift
  "$@" build --max-examples 2000 --out "$scratch/$name" 2>&1 | tail -n 2
  "$@" verify "$scratch/$name"
  "$@" serve "$scratch/$name" --socket "$scratch/$name.sock" >"$scratch/$name.log" 2>&1 &
  server=$!
  curl -sf --retry 50 --retry-delay 1 --retry-all-errors --unix-socket "$scratch/$name.sock" \
    'http://dsload/v1/batches?batch_size=32&bucket=1024&seed=1' -o "$scratch/$name.arrows" || { cat "$scratch/$name.log" >&2; exit 1; }
  kill "$server"
  wait "$server" || true # 5: interrupted
  server=
}

build "$(go env GOHOSTARCH)"
build arm64
fed native "$scratch/$(go env GOHOSTARCH)"
fed emulated qemu-aarch64 "$scratch/arm64"
for file in manifest.json train-00000.arrow; do cmp "$scratch/native/$file" "$scratch/emulated/$file"; done
cmp "$scratch/native.arrows" "$scratch/emulated.arrows"
echo "arm64 builds and serves the same bytes"

# What Go makes of integers is the same on every processor. Tested is what is not: assembly, and floats, whose products and sums compilers join where a
# processor can. Of three packages whose other tests would take minutes it is what reaches their assembly, and reference ids. Vet compares assembly with its
# declarations.
tested() { GOARCH=arm64 go test -short -vet=off -count=1 -timeout 30m ${GOTESTFLAGS:-} -exec qemu-aarch64 "$@"; }
tokenize=github.com/dsload/dsload/tokenize
whole="$tokenize/train $tokenize/internal/chunkcache $tokenize/internal/engine/unigram $tokenize/internal/jsonx ./internal/dataset"
parts="$tokenize $tokenize/internal/engine/bytebpe ./shard"
assembly=$(GOARCH=arm64 go list -f '{{if .SFiles}}{{.ImportPath}}{{end}}' github.com/dsload/dsload/...)
for package in $assembly; do
  case " $whole $parts " in *" $package "* | *" ./${package#github.com/dsload/dsload/} "*) ;; *) echo "$package has assembly: test it here" >&2; exit 1 ;; esac
done
GOARCH=arm64 go vet -asmdecl $assembly
tested $whole
tested -run 'Agree|Suite|Golden|Span|Rows|Kept|^Fuzz' $parts
