package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"
)

// flag writes options as a command line does.
func flag(option Option, value any) string {
	if value == nil {
		return "--" + string(option)
	}
	return fmt.Sprintf("--%s %v", string(option), value)
}

// foreign is an error type that knows nothing of this package but has a kind.
type foreign struct{ err error }

func (e *foreign) Error() string { return "open `data`: " + e.err.Error() }
func (e *foreign) Unwrap() error { return e.err }
func (e *foreign) Kind() string  { return Corrupt }

func TestShow(t *testing.T) {
	base := Errorf("no room for %s; raise {memory}", "`{memory}`") // what users wrote is not looked at
	for _, c := range []struct {
		err         error
		plain, show string
	}{
		{base, "no room for `{memory}`; raise `memory`", "no room for `{memory}`; raise --memory"},
		{Errorf("build %s: %w", "out", base), "build out: no room for `{memory}`; raise `memory`",
			"build out: no room for `{memory}`; raise --memory"},
		{fmt.Errorf("a: %w", &foreign{base}), "a: open `data`: no room for `{memory}`; raise `memory`",
			"a: open `data`: no room for `{memory}`; raise --memory"},
		{errors.Join(Errorf("{out}"), Errorf("{val}")), "`out`\n`val`", "--out\n--val"},
		{Advise(fs.ErrExist, "give {overwrite}"), "file already exists; give `overwrite`",
			"file already exists; give --overwrite"},
		{BadOption("val", 3, "too many for %v", Option("out")), "`val` 3: too many for `out`",
			"--val 3: too many for --out"},
		{BadOption("val", nil, "100%% of %d", 5), "`val`: 100% of 5", "--val: 100% of 5"},
		{BadOption("val", "", "empty"), "`val`: empty", "--val: empty"},
		{Of(fs.ErrExist, "{{end}} of %q", []byte("x")), `{{end}} of "x"`, `{{end}} of "x"`},
		{fmt.Errorf("read: %w", context.Canceled), "read: context canceled",
			"read: interrupted; run the same command again"},
	} {
		if got := c.err.Error(); got != c.plain {
			t.Errorf("%q, want %q", got, c.plain)
		}
		if got := Show(c.err, flag); got != c.show {
			t.Errorf("%q, want %q", got, c.show)
		}
	}
}

// TestTextKeepsWhatItWasMadeOf: buffers are used again after an error is made.
func TestTextKeepsWhatItWasMadeOf(t *testing.T) {
	buffer := []byte("text")
	texts := []Text{Textf("%s", buffer), Textf("%s {memory}", buffer),
		Kindf(Corrupt, "%q %w", buffer, fs.ErrExist).(*Error).What}
	copy(buffer, "else")
	for i, want := range []string{"text", "text `memory`", `"text" file already exists`} {
		if got := texts[i].String(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	sentinel := New(Limit, "full")
	for _, c := range []struct {
		err  error
		want string
	}{
		{nil, ""}, {fs.ErrExist, ""}, {sentinel, Limit}, {Of(sentinel, "the disk is full"), Limit},
		{fmt.Errorf("write: %w", sentinel), Limit}, {Kindf(Usage, "write: %w", sentinel), Usage},
		{errors.Join(fs.ErrExist, sentinel, New(Corrupt, "bad")), Limit}, {&foreign{sentinel}, Corrupt},
		{Errorf("read: %w", &foreign{fs.ErrExist}), Corrupt}, {BadOption("val", nil, "no"), Usage},
		{Errorf("write: %w", syscall.ENOSPC), Limit}, {Errorf("build: %w", context.Canceled), Interrupted},
	} {
		if got := KindOf(c.err); got != c.want {
			t.Errorf("%v: kind %q, want %q", c.err, got, c.want)
		}
		var found interface{ Kind() string }
		if c.want != "" && (!errors.As(c.err, &found) || found.Kind() != c.want) {
			t.Errorf("%v: errors.As finds no kind %q", c.err, c.want)
		}
	}
	if !errors.Is(Of(sentinel, "x"), sentinel) || !errors.Is(Errorf("%w", sentinel), sentinel) ||
		!errors.Is(Advise(sentinel, "y"), sentinel) {
		t.Error("an error does not match what it wraps")
	}
}

func TestOptionOf(t *testing.T) {
	bad := BadOption("val", 1, "no")
	for _, err := range []error{bad, fmt.Errorf("a: %w", bad), Advise(bad, "b"), errors.Join(fs.ErrExist, bad)} {
		if OptionOf(err) != "val" {
			t.Errorf("%v: option %q", err, OptionOf(err))
		}
	}
	if OptionOf(Errorf("{val}")) != "" {
		t.Error("an option that is only named is not what an error is about")
	}
}

func TestTextJSON(t *testing.T) {
	for _, c := range []struct {
		text Text
		want string
	}{
		{Text{}, `""`}, {Plain("`memory` {memory} 5%"), "\"`memory` {memory} 5%\""},
		{Textf("raise {memory}, or choose another {out}"), `["raise ","memory",", or choose another ","out",""]`},
	} {
		data, err := json.Marshal(c.text)
		if err != nil || string(data) != c.want {
			t.Errorf("%s, %v, want %s", data, err, c.want)
		}
		var back Text
		if err := json.Unmarshal(data, &back); err != nil || back.In(flag) != c.text.In(flag) {
			t.Errorf("%s is read as %q, %v", data, back.In(flag), err)
		}
	}
	if err := json.Unmarshal([]byte("5"), new(Text)); err == nil {
		t.Error("a number is not a text")
	}
}
