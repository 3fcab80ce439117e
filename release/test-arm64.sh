#!/usr/bin/env bash
# Runs arm64 code on this machine, under qemu-user: the quick tests of tokenize and shard, and a build and a feed whose bytes are those of this machine's
# own program. A big-endian program is started too: it must refuse. Takes minutes; needs qemu-user (apt-get install qemu-user).
set -euo pipefail
cd "$(dirname "$0")/.."
for program in qemu-aarch64 qemu-s390x curl; do
  command -v "$program" >/dev/null || { echo "test-arm64 needs $program: apt-get install qemu-user curl" >&2; exit 1; }
done
scratch=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill "$server" 2>/dev/null; rm -rf "$scratch"' EXIT
export CGO_ENABLED=0

# build PROCESSOR FLAG... builds a program for a processor.
build() { GOARCH=$1 go build "${@:2}" -o "$scratch/$1" ./cmd/dsload; }

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
build s390x ${TYPESONLY:+"$TYPESONLY"} # compiled for less, since it only has to refuse
fed native "$scratch/$(go env GOHOSTARCH)"
fed emulated qemu-aarch64 "$scratch/arm64"
for file in manifest.json train-00000.arrow; do cmp "$scratch/native/$file" "$scratch/emulated/$file"; done
cmp "$scratch/native.arrows" "$scratch/emulated.arrows"
echo "arm64 builds and serves the same bytes"

if qemu-s390x "$scratch/s390x" version 2>"$scratch/refusal"; then echo "a big-endian program ran" >&2; exit 1; fi
grep -q "little-endian" "$scratch/refusal"

# Vet compares assembly with its declarations.
packages="github.com/dsload/dsload/tokenize/... ./shard/... ./internal/dataset/... ./internal/shardfile/..."
GOARCH=arm64 go vet $packages
GOARCH=arm64 go test -short -count=1 -timeout 30m ${GOTESTFLAGS:-} -exec qemu-aarch64 $packages
