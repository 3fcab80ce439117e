package help

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// sized is a flag that takes a number of bytes.
type sized struct{}

func (*sized) String() string   { return "0" }
func (*sized) Set(string) error { return nil }
func (*sized) Type() string     { return ValueSize }

func TestFlagRow(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.StringP("out", "o", "here", "a folder")
	flags.String("eos", "", "a token")
	flags.Var(&sized{}, "bytes", "how much")
	flags.Int("rows", 0, "how many")
	flags.Duration("for", 120e9, "how long")
	flags.Bool("quick", false, "do it fast")
	NameValues(flags, "DIR", "out")
	NameValues(flags, "TOKEN", "eos")
	flags.Lookup("eos").NoOptDefVal = "auto"
	for name, want := range map[string]entry{
		"out":   {"-o, --out", "DIR", "a folder (default here)"},
		"eos":   {"    --eos[=TOKEN]", "", "a token"},
		"bytes": {"    --bytes", "SIZE", "how much"},
		"rows":  {"    --rows", "N", "how many"},
		"for":   {"    --for", "TIME", "how long (default 2m)"},
		"quick": {"    --quick", "", "do it fast"},
	} {
		if got := flagRow(flags.Lookup(name)); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, c := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 7, "one two|three"},
		{"one two three", 100, "one two three"},
		{"änderung ü", 8, "änderung|ü"},
		{"averylongword x", 5, "averylongword|x"},
		{"  ", 5, ""},
	} {
		if got := strings.Join(wrapped(c.text, c.width), "|"); got != c.want {
			t.Errorf("wrapped(%q, %d) = %q, want %q", c.text, c.width, got, c.want)
		}
	}
}

func TestRoff(t *testing.T) {
	if got, want := roff(`.a-b 'c\' "…"`), `\&.a\-b \(aqc\e\(aq \(dq\[u2026]\(dq`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	command := &cobra.Command{Use: "make", Short: "Make it", Long: "Makes it:\n  .at once\n\n.or 'later'", Example: "make ."}
	command.Flags().Int("n", 1, "'.' is `N`")
	for line := range strings.SplitSeq(string(manualPage(command, "1")), "\n") {
		macro, _, _ := strings.Cut(line, " ")
		if strings.HasPrefix(line, ".") && !slices.Contains(strings.Fields(".TH .SH .B .PP .TP .nf .fi .BR"), macro) {
			t.Errorf("a line begins with the macro %s", macro)
		}
	}
}
