package ingest

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/shardfile/shardtest"
)

// A build whose template loops ends at a checkpoint on request, without waiting for records read.
func TestInterruptEndsATemplate(t *testing.T) {
	dir := t.TempDir()
	records, loop := filepath.Join(dir, "t.jsonl"), filepath.Join(dir, "loop.jinja")
	for path, text := range map[string]string{
		records: "{\"text\":\"fine\"}\n" + strings.Repeat("{\"text\":\"loop\"}\n", 5000), // hours of work
		loop:    `{% if text != "fine" %}` + strings.Repeat("{% for i in range(99999) %}", 4) + strings.Repeat("{% endfor %}", 4) + `{% endif %}{{ text }}`,
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	fsys := shardtest.New()
	for range 2 { // afresh, and from the checkpoint
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		_, err := Run(ctx, option.Options{Out: "data",
			Resources: option.Resources{LoadedTokenizer: small(), Workers: 2, FS: fsys},
			Settings:  option.Settings{Sources: []string{records}, Template: loop, OnBadRecord: "skip"},
			Hooks:     option.Hooks{Progress: func(report.Progress) { cancel() }}})
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
	}
}

// What a template may compute is a part of the cap, twice as much where it makes prompt and target.
func TestTemplateIsUnderTheCap(t *testing.T) {
	smallest := func(body string) int64 {
		o := option.Options{Resources: option.Resources{LoadedTokenizer: small(), Memory: 256 << 20, Workers: 2}}
		if body != "" {
			o.Template = filepath.Join(t.TempDir(), "t.jinja")
			if err := os.WriteFile(o.Template, []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		plan, err := PlanMemory(o)
		if err != nil {
			t.Fatal(err)
		}
		return plan.Smallest
	}
	none, one, two := smallest(""), smallest("{{ text }}"), smallest(pairTemplate)
	if one < none+2<<20 || two < one+2<<20 {
		t.Errorf("smallest caps: %d without a template, %d with one, %d with one of pairs", none, one, two)
	}
	for _, path := range []string{t.TempDir(), "/dev/null"} {
		var bad *fault.Error
		if _, err := PlanMemory(option.Options{Resources: option.Resources{LoadedTokenizer: small()},
			Settings: option.Settings{Template: path}}); !errors.As(err, &bad) ||
			bad.Option != "template" {
			t.Errorf("%s: %v", path, err)
		}
	}
}
