//go:build unix

package command

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func start(t *testing.T, command string) *Process {
	t.Helper()
	p, err := Start(command, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 3*bufferBytes)
	p := start(t, "cat; printf end")
	go func() {
		_, _ = io.WriteString(p, "a\r\n\n"+long+"\n"+long+"yyy\nb\n")
		p.CloseInput()
	}()
	for _, want := range []struct {
		line string
		err  error
	}{{"a", nil}, {"", nil}, {long, nil}, {"", ErrTooLong}, {"b", nil}, {"end", io.ErrUnexpectedEOF}, {"", io.EOF}} {
		line, err := p.AppendLine([]byte("-"), len(long))
		if string(line) != "-"+want.line && err == nil || !errors.Is(err, want.err) || len(line) != 1+len(want.line) {
			t.Fatalf("%.20q (%d bytes), %v; want %.20q, %v", line, len(line), err, want.line, want.err)
		}
	}
	if err := p.Wait(); err != nil {
		t.Error(err)
	}
}

// TestReady: output is seen before it is read, a line at a time.
func TestReady(t *testing.T) {
	p := start(t, "read go; printf half; read go; echo whole; read go")
	ready := p.Ready()
	for range 2 {
		select {
		case <-ready:
			t.Fatalf("ready with %q", p.Output())
		default:
		}
		_, _ = io.WriteString(p, "go\n")
	}
	if <-ready; string(p.Output()) != "halfwhole\n" {
		t.Errorf("output %q", p.Output())
	}
	if line, err := p.AppendLine(nil, 100); string(line) != "halfwhole" || err != nil {
		t.Errorf("%q, %v", line, err)
	}
	p.CloseInput()
	if <-p.Ready(); len(p.Output()) > 0 {
		t.Errorf("output %q after the last line", p.Output())
	}
}

// TestStderrHasAnEnd keeps the last lines, passes on the first, and waits for nobody who holds stderr.
func TestStderrHasAnEnd(t *testing.T) {
	var said []string
	p, err := Start(`i=0; while [ $i -lt 1000 ]; do i=$((i+1)); echo "line $i" >&2; done; sleep 1000 & exit 3`,
		func(line string) { said = append(said, line) })
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := p.Wait(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("ended with %v", err)
	}
	text := p.Stderr()
	if len(text) > tailBytes || !strings.HasSuffix(text, "line 999\nline 1000") || !strings.HasPrefix(text, "line ") {
		t.Errorf("%d bytes: %q", len(text), text)
	}
	if len(said) != saidLines || said[0] != "line 1" || said[99] != "line 100 (further lines are not shown)" {
		t.Errorf("%d lines: %q", len(said), said)
	}
}

// TestStop ends a command that ignores SIGTERM and one that does not read.
func TestStop(t *testing.T) {
	for _, command := range []string{"trap '' TERM; echo; sleep 1000; sleep 1000", "echo; sleep 1000"} {
		p := start(t, command)
		if _, err := p.AppendLine(nil, 10); err != nil { // it has set its trap
			t.Fatal(err)
		}
		p.Stop()
		if _, err := p.AppendLine(nil, 10); err == nil {
			t.Errorf("%s: no error", command)
		}
		if err := p.Wait(); err == nil {
			t.Errorf("%s: it ended well", command)
		}
	}
}

func TestFind(t *testing.T) {
	for command, ok := range map[string]bool{"cat": true, "  cat -u": true, "/bin/sh -c x": true,
		"while read l; do :; done": true,
		"cd / && nosuchcommand-zz": true, "X=1 nosuchcommand-zz": true, "nosuchcommand-zz": false, " ": false,
		"./nosuch/command --x": false} {
		if err := Find(command); (err == nil) != ok {
			t.Errorf("%s: %v", command, err)
		}
	}
}
