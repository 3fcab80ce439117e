package help

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/spf13/cobra"
)

// WriteManual writes the manual pages of cmd and its commands into a folder.
func WriteManual(cmd *cobra.Command, version, dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	if err := os.WriteFile(filepath.Join(dir, name), manualPage(cmd, version), 0o644); err != nil {
		return fmt.Errorf("write manual page: %w", err)
	}
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if err := WriteManual(sub, version, dir); err != nil {
			return err
		}
	}
	return nil
}

// manualPage returns the manual page of a command in the macros of man(7).
func manualPage(cmd *cobra.Command, version string) []byte {
	p := Of(cmd)
	name := strings.ReplaceAll(p.name, " ", "-")
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH %s 1 \"\" %q \"dsload manual\"\n", roff(strings.ToUpper(name)), "dsload "+version)
	fmt.Fprintf(&b, ".SH NAME\n%s \\- %s\n", roff(name), roff(p.short))
	b.WriteString(".SH SYNOPSIS\n")
	for _, line := range p.usage {
		fmt.Fprintf(&b, ".B %s\n", roff(line))
	}
	b.WriteString(".SH DESCRIPTION\n")
	for _, paragraph := range p.about {
		b.WriteString(".PP\n")
		manualParagraph(&b, paragraph)
	}
	for _, t := range p.tables {
		manualTable(&b, t)
	}
	if len(p.examples) > 0 {
		b.WriteString(".SH EXAMPLES\n.nf\n")
		for _, line := range p.examples {
			b.WriteString(roff(line) + "\n")
		}
		b.WriteString(".fi\n")
	}
	manualTable(&b, exitPage(nil).tables[0])
	manualSeeAlso(&b, cmd)
	return b.Bytes()
}

// manualParagraph writes text, and lines that begin with two spaces as they are.
func manualParagraph(b *bytes.Buffer, text string) {
	asIs := false
	for line := range strings.SplitSeq(text, "\n") {
		if pre := strings.HasPrefix(line, "  "); pre != asIs {
			b.WriteString(map[bool]string{true: ".nf\n", false: ".fi\n"}[pre])
			asIs = pre
		}
		b.WriteString(roff(line) + "\n")
	}
	if asIs {
		b.WriteString(".fi\n")
	}
}

// manualTable writes a list under its title.
func manualTable(b *bytes.Buffer, t table) {
	fmt.Fprintf(b, ".SH \"%s\"\n", roff(strings.ToUpper(t.title)))
	for _, row := range t.rows {
		fmt.Fprintf(b, ".TP\n\\fB%s\\fR", roff(strings.TrimSpace(row.name)))
		if row.value != "" {
			fmt.Fprintf(b, " \\fI%s\\fR", roff(row.value))
		}
		fmt.Fprintf(b, "\n%s\n", roff(row.text))
	}
}

// manualSeeAlso names the pages of the commands above and below.
func manualSeeAlso(b *bytes.Buffer, cmd *cobra.Command) {
	var names []string
	if cmd.HasParent() {
		names = append(names, cmd.Parent().CommandPath())
	}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.CommandPath())
		}
	}
	for i, name := range names {
		names[i] = ".BR " + roff(strings.ReplaceAll(name, " ", "-")) + " (1)"
	}
	fmt.Fprintf(b, ".SH \"SEE ALSO\"\n%s\n", strings.Join(names, "\n"))
}

// roff escapes text for man: hyphens that are typed, quotes, characters beyond ASCII, and what would be a
// macro at the beginning of a line.
func roff(text string) string {
	var b strings.Builder
	if strings.HasPrefix(text, ".") {
		b.WriteString(`\&`)
	}
	for _, r := range text {
		switch {
		case r == '\\':
			b.WriteString(`\e`)
		case r == '-':
			b.WriteString(`\-`)
		case r == '\'':
			b.WriteString(`\(aq`)
		case r == '"':
			b.WriteString(`\(dq`)
		case r > unicode.MaxASCII:
			fmt.Fprintf(&b, `\[u%04X]`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}
