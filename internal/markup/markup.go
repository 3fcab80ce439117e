// Package markup writes pages in which the text of others stays text. They load nothing and run nothing.
package markup

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"strings"

	"github.com/dsload/dsload/internal/visible"
)

// HTML is markup, of which dsload itself or Format is the author.
type HTML string

// Format is fmt.Sprintf for markup. HTML and plain numbers are written as they are, and everything else
// as text: as visible.Text has it, escaped for elements and for quoted attributes.
func Format(format string, args ...any) HTML {
	escaped := make([]any, len(args))
	for i, a := range args {
		switch a.(type) {
		case HTML, int:
			escaped[i] = a
		default:
			escaped[i] = html.EscapeString(visible.Text(fmt.Sprint(a)))
		}
	}
	return HTML(fmt.Sprintf(format, escaped...))
}

// Each joins the markup of the elements of a list, each made from its index and value.
func Each[T any](list []T, markup func(int, T) HTML) HTML {
	var b strings.Builder
	for i, x := range list {
		b.WriteString(string(markup(i, x)))
	}
	return HTML(b.String())
}

// Fill returns source with the slot {{name}} replaced by slots[name], for each slot in it.
func Fill(source string, slots map[string]HTML) HTML {
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(source, "{{")
		b.WriteString(before)
		if !found {
			return HTML(b.String())
		}
		name, after, _ := strings.Cut(rest, "}}")
		slot, ok := slots[name]
		if !ok {
			panic("markup: nothing fills the slot " + name)
		}
		b.WriteString(string(slot))
		source = after
	}
}

//go:embed copy.js
var copyScript string

// policy returns the source of a page's policy for a style or script.
func policy(text string) HTML {
	sum := sha256.Sum256([]byte(text))
	return HTML("'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'")
}

// Page returns a page whose policy lets a browser use the style and nothing else, but for the script of its buttons of
// the class copy, which copy the element before them.
func Page(title, style string, body HTML) []byte {
	var script, scripts HTML
	if strings.Contains(string(body), `class="copy"`) {
		script, scripts = HTML("<script>"+copyScript+"</script>\n"), "; script-src "+policy(copyScript)
	}
	return []byte(Format(`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src %s%s; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>%s · dsload</title>
<style>%s</style>
</head>
<body>
%s%s</body>
</html>
`, policy(style), scripts, title, HTML(style), body, script))
}
