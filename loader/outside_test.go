package loader

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// stranger is a program of somebody who has seen no more than what go doc shows of the five packages.
const stranger = `package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/dsload/dsload/export"
	"github.com/dsload/dsload/loader"
	"github.com/dsload/dsload/shard"
	"github.com/dsload/dsload/stats"
	"github.com/dsload/dsload/tokenize"
	"github.com/dsload/dsload/tokenize/builtin"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func main() {
	ctx, dir := context.Background(), os.Args[1]
	text := filepath.Join(dir, "text.txt")
	must(os.WriteFile(text, []byte("Hello world\nHello again, world\nHello world\n"), 0o600))

	sum, err := loader.Build(ctx, loader.BuildOptions{Sources: []string{text}, Out: filepath.Join(dir, "data"),
		Format: loader.FormatText, Overflow: loader.OverflowTruncate, Dedup: loader.DedupExact, MaxLength: 16,
		EOS: loader.OwnToken, OnBadRecord: loader.OnBadRecordSkip})
	must(err)
	fmt.Println(sum.Splits[0].Examples, sum.Splits[0].Tokens, sum.Documents, sum.DroppedBy["dedup"])

	d, err := shard.Open(sum.Out)
	must(err)
	defer d.Close()
	train, err := d.Split("train")
	must(err)
	var row shard.Row
	must(train.ReadRow(1, &row))
	gpt2, err := builtin.Open("gpt2")
	must(err)
	fmt.Println(gpt2.Decode(row.AppendInputIDs(nil)))

	made, err := export.Run(ctx, d, export.Options{Formats: []string{export.JSONL}, Out: filepath.Join(dir, "out"),
		Decode: gpt2.Decode})
	must(err)
	report, err := stats.Run(ctx, d, stats.Options{
		OpenTokenizer: func() (*tokenize.Tokenizer, error) { return gpt2, nil }})
	must(err)
	var page bytes.Buffer
	must(stats.WriteHTML(&page, []*stats.Report{report}))
	fmt.Println(made.Splits[0].Documents, report.Splits[0].Examples, page.Len() > 1000)

	l, err := loader.Open(ctx, sum.Out, "batch_size=2&shuffle=none")
	must(err)
	defer l.Close()
	for batch, err := range l.Batches() {
		must(err)
		fmt.Println(batch.Rows, batch.Length, batch.InputIDs[:batch.Length], batch.Labels[batch.Length:], batch.Next)
	}

	_, err = tokenize.Load(filepath.Join(dir, "nothing"))
	fmt.Println(errors.Is(err, os.ErrNotExist))
	_, err = loader.Open(ctx, sum.Out, "batch_size=none")
	var e loader.Error
	fmt.Println(errors.As(err, &e) && e.Kind() == loader.Usage)
}
`

const strangerSays = `2 8 3 1
Hello again, world<|endoftext|>
2 2 true
2 5 [15496 995 50256 50256 50256] [15496 757 11 995 50256] 2
true
true
`

// TestProgramOutside finds all that a program needs in a module of its own, without a network, and runs the program. It is
// compiled as one of this module, whose packages are compiled already.
func TestProgramOutside(t *testing.T) {
	if testing.Short() {
		t.Skip("it links a program")
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]map[string]string{
		"Replace": {filepath.Join(root, "stranger", "main.go"): filepath.Join(dir, "main.go")}})
	if err != nil {
		t.Fatal(err)
	}
	version := regexp.MustCompile(`(?m)^go .*\n`).Find(mod)
	for name, content := range map[string]string{
		"go.mod": "module example.com/outside\n\n" + string(version) + "\nrequire github.com/dsload/dsload v0.0.0\n\n" +
			"replace github.com/dsload/dsload => " + root + "\n" +
			"replace github.com/dsload/dsload/tokenize => " + filepath.Join(root, "tokenize") + "\n",
		"go.sum": string(sums), "main.go": stranger, "overlay.json": string(overlay),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "program")
	for folder, args := range map[string][]string{
		dir:  {"list", "-deps", "-mod=mod", "."},
		root: {"build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./stranger"},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = folder
		cmd.Env = append(os.Environ(), "GOPROXY=off", "GOWORK=off", "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
	}
	out, err := exec.Command(program, dir).CombinedOutput()
	if err != nil || string(out) != strangerSays {
		t.Errorf("%v\n%s, want\n%s", err, out, strangerSays)
	}
}
