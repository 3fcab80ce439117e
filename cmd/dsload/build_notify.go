package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/report"
	"github.com/dsload/dsload/internal/notify"
)

// notifyGrace is how long a build that has ended waits for its messages to be delivered.
const notifyGrace = 3 * time.Second

// newNotifier returns the notifier for --notify, nil without services, and counts its memory.
func newNotifier(addresses []string, o *option.Options, stderr io.Writer) (*notify.Notifier, error) {
	n, err := notify.New(addresses, func(text string) { warn(stderr, text) })
	if usage, ok := errors.AsType[*notify.UsageError](err); ok {
		return nil, usagef("--notify: %v", usage)
	}
	if err != nil || n == nil {
		return nil, err
	}
	o.ExtraBytes += notify.Bytes
	out := o.Out
	o.Resuming = func(c report.Totals) {
		n.Send(message(out, "resumed", fmt.Sprintf("resumes at example %s", formatCount(c.Examples)),
			map[string]any{"examples": c.Examples, "tokens": c.Tokens}))
	}
	return n, nil
}

// notifyDone sends a message about how a build ended.
func notifyDone(n *notify.Notifier, out string, s *report.Summary, err error) {
	if n == nil {
		return
	}
	if err != nil {
		event := "failed"
		if exitCode(err) == exitInterrupted {
			event = "interrupted"
		}
		n.Send(message(out, event, errorLine(err), map[string]any{"exit_code": exitCode(err), "error": errorLine(err)}))
		return
	}
	examples, tokens := s.Sums()
	text := fmt.Sprintf("%s, %s in %s", plural(examples, "example"), plural(tokens, "token"),
		(time.Duration(s.Seconds*1000) * time.Millisecond).Round(100*time.Millisecond))
	if s.AlreadyBuilt {
		text = fmt.Sprintf("it was built already: %s, %s", plural(examples, "example"), plural(tokens, "token"))
	}
	if s.Rejected > 0 {
		text += fmt.Sprintf("; %s skipped", plural(s.Rejected, "bad record"))
	}
	n.Send(message(out, "done", text, map[string]any{
		"exit_code": exitDone, "examples": examples, "tokens": tokens, "documents": s.Documents,
		"text_bytes": s.TextBytes, "rejected": s.Rejected,
		"seconds": s.Seconds, "mb_per_s": s.MBPerSecond, "tokens_per_s": s.TokensPerSecond,
		"peak_rss_bytes": s.PeakRSSBytes, "memory_cap_bytes": s.CapBytes, "stopped": s.Stopped, "resumed": s.Resumed, "already_built": s.AlreadyBuilt,
	}))
}

// message returns a message about the build of a folder.
func message(out, event, text string, facts map[string]any) notify.Message {
	abs := absOut(out)
	host, _ := os.Hostname() // for people; it may be missing
	facts["name"], facts["out"], facts["host"], facts["program"] = filepath.Base(abs), abs, host, "dsload build"
	title := fmt.Sprintf("dsload build %s: %s", oneLine(filepath.Base(abs)), event)
	if host != "" {
		title += " on " + host
	}
	return notify.Message{Event: event, Title: title, Text: oneLine(text), Facts: facts}
}
