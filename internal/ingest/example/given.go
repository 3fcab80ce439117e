package example

import (
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
	"github.com/dsload/dsload/internal/spelling"
)

// isTemplateText reports whether what people give is the text of a template rather than the name of one.
func isTemplateText(given string) bool {
	return strings.Contains(given, "{{") || strings.Contains(given, "{%")
}

// ReadTemplate returns the template that people give for an option: the text itself, that of a file, or the name of a
// built-in template. Settings keep the text of a file, not its path.
func ReadTemplate(option fault.Option, given string) (string, error) {
	switch {
	case isTemplateText(given):
		return unescape(given), nil
	case given == "" || option == "template" && IsBuiltin(given):
		return given, nil
	}
	info, err := os.Stat(given)
	switch {
	case err != nil:
		return "", noSuchTemplate(option, given, err)
	case !info.Mode().IsRegular():
		return "", fault.BadOption(option, given, "it is not a file; give a text file with a template in Jinja, or its text")
	case info.Size() == 0:
		return "", fault.BadOption(option, given, "the file is empty; write a template into it")
	case info.Size() > jinja.MaxTemplateBytes:
		return "", fault.BadOption(option, given, "template of %d bytes; the limit is %d", info.Size(),
			jinja.MaxTemplateBytes)
	}
	data, err := os.ReadFile(given)
	if err != nil {
		return "", fault.BadOption(option, given, "%v", err)
	}
	return string(data), nil
}

// noSuchTemplate explains that a name is not that of a file.
func noSuchTemplate(option fault.Option, given string, err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		err = path.Err
	}
	what := "cannot be read"
	words := []string{}
	if option == "template" {
		words = Builtins()
		what = "is not a built-in template (" + strings.Join(words, ", ") + ") and cannot be read"
	}
	near := spelling.Nearest(given, words)
	if near == "" {
		near = spelling.NearestFile(given)
	}
	cure := "; the text of a template has {{ }} in it, as in '{{ title }}: {{ text }}'"
	if near != "" {
		cure = "; did you mean " + near + "?"
	}
	return fault.BadOption(option, clip(given, maxShown), "%s: %v%s", what, err, cure)
}

// maxShown bounds how much of what was given an error repeats.
const maxShown = 200

// escapes are what the text of a template may have outside of its tags: a shell passes a backslash and an n on as they
// are. In a tag Jinja has escapes of its own.
var (
	escapes = strings.NewReplacer(`\\`, `\`, `\n`, "\n", `\t`, "\t")
	escaped = strings.NewReplacer(`\`, `\\`, "\n", `\n`, "\t", `\t`)
)

// unescape returns the text of a template that was given on a command line. It keeps a line break at its end, of which
// Jinja drops one.
func unescape(text string) string {
	var out strings.Builder
	for text != "" {
		at, end := len(text), ""
		for _, tag := range [...][2]string{{"{{", "}}"}, {"{%", "%}"}, {"{#", "#}"}} {
			if i := strings.Index(text, tag[0]); i >= 0 && i < at {
				at, end = i, tag[1]
			}
		}
		out.WriteString(escapes.Replace(text[:at]))
		text = text[at:]
		n := len(text)
		if i := strings.Index(text, end); i >= 0 && n > 0 {
			n = i + len(end)
		}
		out.WriteString(text[:n])
		text = text[n:]
	}
	if s := out.String(); !strings.HasSuffix(s, "\n") {
		return s
	}
	return out.String() + "\n"
}
