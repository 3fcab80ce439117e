package bench

import (
	"bytes"
	"compress/gzip"
	"debug/elf"
	"debug/gosym"
	"encoding/binary"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest"
)

// protoMessage builds a message of protocol buffers.
type protoMessage []byte

func (m *protoMessage) number(field int, v uint64) {
	*m = binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3), v)
}

func (m *protoMessage) bytes(field int, data []byte) {
	*m = append(binary.AppendUvarint(binary.AppendUvarint(*m, uint64(field)<<3|2), uint64(len(data))), data...)
}

// aProfile returns a profile with stacks, innermost function first, each met as often as its place says. A stack
// with one number for each value has its values packed, another does not, as the format allows. goroutines
// names those of some stacks.
func aProfile(stacks [][]string, goroutines map[int]string) []byte {
	var p protoMessage
	words := []string{"", "alone", "other"}
	for i, stack := range stacks {
		var sample protoMessage
		var places []byte
		for _, function := range stack {
			id := uint64(len(words))
			words = append(words, function)
			var f, line, location protoMessage
			f.number(1, id)
			f.number(2, id)
			p.bytes(5, f)
			line.number(1, id)
			location.number(1, id)
			location.bytes(4, line)
			p.bytes(4, location)
			if places = binary.AppendUvarint(places, id); i%2 == 1 {
				sample.number(1, id)
			}
		}
		if name := goroutines[i]; name != "" {
			for key, value := range map[uint64]string{1: name, 2: "label of something else"} {
				var label protoMessage
				label.number(1, key)
				label.number(2, uint64(len(words)))
				words = append(words, value)
				sample.bytes(3, label)
			}
		}
		n := uint64(i + 1)
		if i%2 == 1 {
			sample.number(2, n)
			sample.number(2, n*10_000_000)
		} else {
			sample.bytes(1, places)
			sample.bytes(2, binary.AppendUvarint([]byte{byte(n)}, n*10_000_000))
		}
		p.bytes(2, sample)
	}
	for _, w := range words {
		p.bytes(6, []byte(w))
	}
	return p
}

func TestSamplesOfStages(t *testing.T) {
	const ours = "github.com/dsload/dsload/"
	data := aProfile([][]string{
		{"runtime.memmove", ours + "internal/ingest/read.(*Stage).next", ours + "internal/ingest/read.(*Stage).Run"},
		{ours + "tokenize.(*Encoder).AppendPiece", ours + "internal/ingest/work.(*Worker).Do"},
		{"syscall.pwrite", ours + "internal/dataset.(*Builder).Append", ours + "internal/ingest.(*flusher).job"},
		{"github.com/zeebo/blake3.(*Hasher).Write", ours + "internal/dataset.(*openShard).put", ours + "internal/dataset.(*Builder).Append"},
		{ours + "internal/jsonscan.(*Scanner).String", ours + "internal/ingest/work.(*Worker).Do"},
		{ours + "internal/ingest/example.(*Cutter).End", ours + "internal/ingest.(*flusher).job"},
		{"runtime.gcBgMarkWorker"},
		{"os.Open", ours + "internal/ingest.(*build).prepare", "main.run"},
		{"syscall.pwrite", ours + "internal/dataset.(*Builder).writeBatch", ours + "internal/ingest.(*flusher).job"},
		{"hash/crc32.Update", ours + "internal/dataset.(*openShard).hashParts", ours + "internal/dataset.(*Builder).writeBatch"},
	}, map[int]string{0: "reader", 2: "flusher", 5: "flusher", 8: "flusher", 9: "flusher"})
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	w.Write(data)
	w.Close()
	path := filepath.Join(t.TempDir(), "profile")
	if err := os.WriteFile(path, z.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	counts := samples{map[string]int64{}, map[string]int64{"writer": 0}}
	if err := counts.add(path); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"read": 1, "tokenize": 2, "write": 12, "hash": 14, "format": 5, "cut": 6,
		"rest": 7, "start": 8}
	if alone := map[string]int64{"reader": 1, "flusher": 9, "writer": 9, "hasher": 10}; !maps.Equal(counts.stages, want) ||
		!maps.Equal(counts.alone, alone) {
		t.Errorf("%v, want %v and %v", counts, want, alone)
	}
	f := BuildFigures{CPUSeconds: 5.5, TextBytes: 20e6}
	f.addStages(&counts)
	if want := []AloneCost{{"hasher", 1, 50}, {"flusher", .9, 45}, {"writer", .9, 45}, {"reader", .1, 5}}; !slices.EqualFunc(f.Alone, want,
		func(a, b AloneCost) bool {
			return a.Goroutine == b.Goroutine && math.Abs(a.CPUSeconds-b.CPUSeconds)+math.Abs(a.SecondsPerGB-b.SecondsPerGB) < 1e-9
		}) || math.Abs(f.BoundMBPerSecond-1000./50) > 1e-9 {
		t.Errorf("%+v, at most %v MB/s", f.Alone, f.BoundMBPerSecond)
	}
	if f.Samples != 55 || len(f.Stages) != len(stages) || f.Stages[0] != (StageCost{"start", .8, 25}) {
		t.Errorf("%d samples, %+v", f.Samples, f.Stages)
	}
	for n := range data {
		_ = readProfile(data[:n], func(int64, []string, string) {}) // cut short it may be wrong, and must not panic
	}
}

// The functions by which stages are told apart are in the program.
func TestStagesAreFunctions(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the program's table of functions is read from an ELF file")
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := f.Section(".gopclntab").Data()
	if err != nil {
		t.Fatal(err)
	}
	table, err := gosym.NewTable(nil, gosym.NewLineTable(lines, f.Section(".text").Addr))
	if err != nil {
		t.Fatal(err)
	}
	if reflect.ValueOf(ingest.Run).IsNil() { // which keeps it, and all that it calls, in this program
		t.Fatal("no build")
	}
	main, err := os.ReadFile("../../cmd/dsload/main.go")
	if err != nil || !strings.Contains(string(main), "\nfunc run(") {
		t.Errorf("main.run: %v", err)
	}
	for _, s := range stageOf {
		if s.function != "main.run" && !slices.ContainsFunc(table.Funcs, func(f gosym.Func) bool {
			return strings.Contains(f.Name, s.function)
		}) {
			t.Errorf("no function of the program is named %s, which is to be of the stage %s", s.function, s.stage)
		}
		if !slices.Contains(stages, s.stage) {
			t.Errorf("the stage %s is not printed", s.stage)
		}
	}
}
