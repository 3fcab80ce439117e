package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dsload/dsload/internal/ingest"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
)

// TestBuildPageFollowsTheBuild checks that the page shows what the build itself reports, from its
// beginning to its end.
func TestBuildPageFollowsTheBuild(t *testing.T) {
	for _, c := range []struct {
		name   string
		cancel bool
		source string
		phase  string
	}{
		{"done", false, "synth://recipes?seed=1", "done"},
		{"failed", false, "/nowhere/at/all.txt", "failed"},
		{"interrupted", true, "synth://recipes?seed=1", "interrupted"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := option.Defaults()
			o.Sources, o.Out, o.MaxExamples = []string{c.source}, t.TempDir()+"/<b>out", 300
			p, err := listenPage("127.0.0.1:0", &o)
			if err != nil {
				t.Fatal(err)
			}
			var before buildState
			decode(t, p.state(time.Now()), &before)
			if before.Phase != "preparing" || before.Name != "<b>out" || before.Fraction != nil {
				t.Errorf("before: %+v", before)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if c.cancel {
				o.MaxExamples = 1 << 40
				o.Progress = func(p report.Progress) {
					if p.Examples > 0 {
						cancel()
					}
				}
			}
			summary, err := runBuildWithPage(ctx, o, nil, p)
			var after buildState
			decode(t, p.state(time.Now()), &after)
			if after.Phase != c.phase || (err == nil) != (c.phase == "done") {
				t.Fatalf("%s, %v: %+v", after.Phase, err, after)
			}
			switch c.phase {
			case "done":
				if after.Examples != 300 || *after.Fraction != 1 || after.Splits[0].Examples != 300 ||
					*after.Splits[0].Tokens != after.Tokens ||
					after.Left != nil || after.Tokenizer != "gpt2" || len(after.Shares) < 5 ||
					after.Sources[0].URI != c.source {
					t.Errorf("%+v", after)
				}
				if summary.Splits[0].Tokens != after.Tokens || !slices.ContainsFunc(after.Notices,
					func(s string) bool { return strings.HasPrefix(s, "stopped: --max-examples") }) {
					t.Errorf("%d tokens, %q", after.Tokens, after.Notices)
				}
			case "failed":
				if !strings.Contains(after.Message, c.source) {
					t.Errorf("message %q", after.Message)
				}
			case "interrupted":
				if !errors.Is(err, ingest.ErrInterrupted) || after.Examples == 0 ||
					after.CheckpointExamples != after.Examples {
					t.Errorf("%v: %d examples, %d durable", err, after.Examples, after.CheckpointExamples)
				}
			}
		})
	}
}

func decode(t *testing.T, state any, to *buildState) {
	t.Helper()
	data, err := json.Marshal(state)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatal(err)
	}
}

// TestBuildPageRates checks that rates and the time left come from the latest samples.
func TestBuildPageRates(t *testing.T) {
	p := &buildPage{}
	start := time.Unix(1000, 0)
	for i := range 25 {
		p.past = append(p.past, buildSample{at: start.Add(time.Duration(i) * time.Second), text: int64(i * i),
			fraction: float64(i) / 100})
	}
	from, to, ok := p.since(rateSpan)
	if got := to.at.Sub(from.at); !ok || got != rateSpan || to.text-from.text != 24*24-19*19 {
		t.Errorf("%v: %v", ok, got)
	}
	left := p.left(&report.Details{Progress: report.Progress{Elapsed: 24 * time.Second}})
	if left == nil || fmt.Sprintf("%.3f", *left) != "76.000" {
		t.Errorf("%v left", left)
	}
	if left := p.left(&report.Details{Progress: report.Progress{Elapsed: time.Second}}); left != nil {
		t.Errorf("%v left after a second", *left)
	}
	d := &report.Details{Stages: report.Stages{Workers: 2}}
	p.past[24].stages = report.Stages{Tokenizing: 9 * time.Second, Reading: time.Second, Mapping: 3 * time.Second}
	var s buildState
	if p.fillStages(&s, d); s.Limited != "tokenizing" || *s.Stages[1].Busy != 0.9 || *s.Stages[0].Busy != 0.2 ||
		*s.Stages[2].Busy != 0 {
		t.Errorf("limited by %q", s.Limited)
	}
	p.limits.Map = "slow"
	p.past[24].stages = report.Stages{Tokenizing: time.Second, Reading: time.Second, Mapping: 4 * time.Second}
	if p.fillStages(&s, d); s.Limited != "--map" || *s.Stages[3].Busy != 0.8 {
		t.Errorf("with a slow command: limited by %q", s.Limited)
	}
}
