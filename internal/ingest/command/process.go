// Package command runs a shell command that answers each line of its standard input with a line of its
// standard output.
//
// A Process has one writer, one reader and any number of callers of Stop. The command and all that it starts
// are a process group of their own: a Ctrl-C in the terminal does not reach them, and Stop ends them together.
package command

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/dsload/dsload/internal/procgroup"
)

const (
	// MemoryBytes is what a Process holds, without the lines that its caller keeps.
	MemoryBytes = bufferBytes + tailBytes + 32<<10 // io.Copy's buffer

	bufferBytes = 64 << 10
	// termTime is how long a command has to end after SIGTERM before it is killed.
	termTime = time.Second
	// waitTime is how long a command may run on after it closed its output.
	waitTime = 5 * time.Second
)

// ErrTooLong is returned for a line that is longer than the limit. The rest of it was skipped.
var ErrTooLong = errors.New("line too long")

// A Process is a command that runs.
type Process struct {
	cmd    *exec.Cmd
	in     *os.File
	out    *os.File
	lines  *bufio.Reader // over out
	ready  chan struct{} // closed once lines has output, or it has ended; nil where nobody asked
	stderr *tail
	exited chan struct{}
	status error // the command's, once exited is closed

	closeIn, stop sync.Once
	closing       sync.WaitGroup
}

// Find returns an error if the first word of a command is a plain name, and the shell knows no command of that
// name. Other commands show what they are when they run.
func Find(command string) error {
	shell, err := exec.LookPath("sh")
	if err != nil {
		return fmt.Errorf("there is no sh to run it: %w", err)
	}
	word, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	if word == "" {
		return errors.New("it is empty")
	}
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+./"
	if strings.Trim(word, plain) != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTime)
	defer cancel()
	var exit *exec.ExitError
	err = exec.CommandContext(ctx, shell, "-c", `command -v "$0" >/dev/null`, word).Run()
	if errors.As(err, &exit) && exit.Exited() {
		return fmt.Errorf("%s: command not found", word)
	}
	return nil
}

// Start runs a command by sh. say, where not nil, is called with the first lines of its stderr, by one
// goroutine.
func Start(command string, say func(line string)) (_ *Process, err error) {
	p := &Process{cmd: exec.Command("sh", "-c", command), stderr: &tail{say: say}, exited: make(chan struct{})}
	p.cmd.SysProcAttr = procgroup.Attributes()
	var ours, theirs [3]*os.File
	defer func() {
		closeAll(theirs[:])
		if err != nil {
			closeAll(ours[:])
		}
	}()
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			return nil, err
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	p.in, p.out, p.lines = ours[0], ours[1], bufio.NewReaderSize(ours[1], bufferBytes)
	go p.wait(ours[2])
	return p, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}

// wait follows the command to its end.
func (p *Process) wait(stderr *os.File) {
	defer close(p.exited)
	var copied sync.WaitGroup
	copied.Go(func() {
		_, _ = io.Copy(p.stderr, stderr)
		_ = stderr.Close()
	})
	p.status = p.cmd.Wait()
	procgroup.Kill(p.cmd.Process)                        // what it left behind
	_ = stderr.SetReadDeadline(time.Now().Add(termTime)) // something outside of the group may hold it open
	copied.Wait()
}

// Write writes to the command's standard input.
func (p *Process) Write(data []byte) (int, error) { return p.in.Write(data) }

// CloseInput ends the command's standard input.
func (p *Process) CloseInput() { p.closeIn.Do(func() { _ = p.in.Close() }) }

// Ready returns a channel that is closed once a line of output can be read, or the beginning of a long one, or
// the output has ended.
func (p *Process) Ready() <-chan struct{} {
	if p.ready != nil {
		return p.ready
	}
	ready := make(chan struct{})
	p.ready = ready
	p.closing.Go(func() {
		defer close(ready)
		for seen := 0; ; seen = p.lines.Buffered() {
			_, err := p.lines.Peek(seen + 1)
			if err != nil || bytes.IndexByte(p.Output()[seen:], '\n') >= 0 {
				return // AppendLine meets the error again
			}
		}
	})
	return ready
}

// Output returns what the command has written and nobody has read, as far as it was received, once Ready's
// channel is closed. It is valid until the next call of AppendLine.
func (p *Process) Output() []byte {
	b, _ := p.lines.Peek(p.lines.Buffered()) // it is there
	return b
}

// AppendLine appends the next line of the command's output to dst, without its end. It returns io.EOF after the
// last line, io.ErrUnexpectedEOF with a last line that has no end, and ErrTooLong, without the line, for one of
// more than limit bytes.
func (p *Process) AppendLine(dst []byte, limit int) ([]byte, error) {
	start := len(dst)
	if p.ready != nil {
		<-p.ready
		p.ready = nil
	}
	for tooLong := false; ; {
		part, err := p.lines.ReadSlice('\n')
		if tooLong = tooLong || len(dst)-start+len(part) > limit+len("\r\n"); !tooLong {
			dst = append(dst, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case tooLong:
			return dst[:start], ErrTooLong
		case err == io.EOF && len(dst) > start:
			return dst, io.ErrUnexpectedEOF
		case err != nil:
			return dst, err
		}
		dst = dst[:len(dst)-1]
		if n := len(dst); n > start && dst[n-1] == '\r' {
			dst = dst[:n-1]
		}
		return dst, nil
	}
}

// Wait returns how the command ended: nil for status 0. One that does not end in seconds, though it closed its
// output, is ended.
func (p *Process) Wait() error {
	select {
	case <-p.exited:
		return p.status
	case <-time.After(waitTime):
		p.Stop()
		p.Close()
		return fmt.Errorf("it closed its output and did not end in %v", waitTime)
	}
}

// Stop makes the command, and what it started, end within a moment. It does not wait.
func (p *Process) Stop() {
	p.stop.Do(func() {
		p.closing.Go(func() {
			select {
			case <-p.exited: // its number may be another process's by now
			default:
				procgroup.End(p.cmd.Process)
			}
			select {
			case <-p.exited:
			case <-time.After(termTime):
				procgroup.Kill(p.cmd.Process)
			}
			_ = p.out.SetReadDeadline(time.Now()) // something outside of the group may hold them open
			_ = p.in.SetWriteDeadline(time.Now())
		})
	})
}

// Close stops the command, waits for its end and releases it. Nothing may read or write any more.
func (p *Process) Close() {
	p.Stop()
	p.closing.Wait()
	<-p.exited
	p.CloseInput()
	_ = p.out.Close()
}

// Stderr returns the last lines that the command wrote to stderr, "" if there are none. Call it after Wait.
func (p *Process) Stderr() string { return p.stderr.String() }

const (
	tailBytes = 4 << 10 // what is kept of stderr
	// saidLines is how many lines of stderr are passed on: a command that logs each record must not bury all else.
	saidLines = 100
)

// tail keeps the end of what is written to it, and passes on the first lines.
type tail struct {
	say func(line string)

	mu   sync.Mutex
	end  []byte
	line []byte // the unfinished line
	said int
}

// Write implements io.Writer.
func (t *tail) Write(data []byte) (int, error) {
	t.mu.Lock()
	t.end = append(t.end, data[max(0, len(data)-tailBytes):]...)
	if over := len(t.end) - tailBytes; over > 0 {
		t.end = t.end[:copy(t.end, t.end[over:])]
	}
	t.mu.Unlock()
	if t.say != nil {
		t.pass(data)
	}
	return len(data), nil
}

// pass calls say for each line.
func (t *tail) pass(data []byte) {
	for t.said < saidLines && len(data) > 0 {
		part, rest, ended := bytes.Cut(data, []byte("\n"))
		if t.line = append(t.line, part[:min(len(part), tailBytes-min(len(t.line), tailBytes))]...); !ended {
			return
		}
		if text := strings.TrimSpace(string(t.line)); text != "" {
			if t.said++; t.said == saidLines {
				text += " (further lines are not shown)"
			}
			t.say(text)
		}
		data, t.line = rest, t.line[:0]
	}
}

// String returns the last lines.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	text := t.end
	if len(text) == tailBytes { // the first line lacks its beginning
		if at := bytes.IndexByte(text, '\n'); at >= 0 {
			text = text[at+1:]
		}
	}
	return strings.TrimSpace(strings.ToValidUTF8(string(text), string(utf8.RuneError)))
}
