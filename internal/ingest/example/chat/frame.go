package chat

import (
	"bytes"
	"slices"
	"strings"
	"unicode"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// frame is what a template writes around what is said. Some begin a turn after the last message without being
// asked to: what is written then is no part of what the last message says.
type frame struct {
	header  string   // what begins a turn of the assistant
	opening string   // what begins a turn that is begun unasked, as the first one of a text; "" if none is
	parts   []string // what a header may begin with, of the whole one on
}

// frame returns that of the template.
func (h *habits) frame() frame {
	if h.framed != nil {
		return *h.framed
	}
	h.framed = &frame{}
	for _, of := range [...]func(string) any{func(s string) any { return s }, func(s string) any { return list(textPart(s)) }} {
		for _, tools := range [...]any{nil, aTool("f")} {
			for _, before := range [...][]any{nil, {message("system", of("Hi"))}} {
				question := append(before, message("user", of("Hi")))
				answered := append(question, message("assistant", of(asked)))
				text := h.render(tools, answered...)
				more := h.render(tools, append(answered, message("user", of("Hi")))...)
				if last, next := strings.LastIndex(text, asked), strings.LastIndex(more, asked); last >= 0 && next >= 0 {
					bos, _ := peek(h.r.opts.Special, "bos_token").(string) // other workers read it too
					h.framed.findOpening(text[last+len(asked):], more[next+len(asked):], strings.TrimPrefix(text, bos))
					prompted := h.rendered(true, tools, question...)
					header := prompted[commonStart(h.render(tools, question...), prompted):]
					if strings.TrimSpace(header) != "" {
						h.framed.header = strings.TrimLeft(header, " \t\r\n")
					}
					h.framed.parts = slices.DeleteFunc(parts(h.framed.header), func(part string) bool {
						return strings.IndexFunc(part, unicode.IsLetter) < 0
					})
					return *h.framed
				}
			}
		}
	}
	return *h.framed
}

// findOpening finds the turn that is begun unasked: rest is what follows the last words, next the same where another
// message follows, and first how the text begins.
func (f *frame) findOpening(rest, next, first string) {
	at := commonStart(rest, next)
	if at == len(rest) {
		return
	}
	for ; at >= 0; at-- {
		shared := commonStart(rest[at:], first)
		if inTag(rest[:at]) < 0 && strings.TrimSpace(rest[at:at+shared]) != "" && strings.TrimSpace(rest[at+shared:]) != "" {
			f.opening, f.header = strings.TrimSpace(rest[at:at+shared]), strings.TrimLeft(rest[at:], " \t\r\n")
			return
		}
	}
}

// leads reports whether what is written before a turn, which follows a message, ends with the turn's header. After
// the words of others it always does; some templates are not asked for one after the assistant, or a tool.
func (f frame) leads(before []byte, message *jinja.Dict) bool {
	role := get(message, "role")
	return role != "assistant" && role != "tool" ||
		bytes.HasSuffix(bytes.TrimSpace(before), []byte(strings.TrimSpace(f.header)))
}

// skip returns the length of the header with which a text begins.
func (f frame) skip(text []byte) int {
	if n := bytes.Index(text, []byte(f.header)); n >= 0 && len(bytes.TrimSpace(text[:n])) == 0 {
		return n + len(f.header)
	}
	return 0
}

// afterHeader returns where the last header in a text ends, or a part of it that begins as it does.
func (f frame) afterHeader(text []byte) int {
	if len(bytes.TrimSpace(text)) == 0 { // the usual case
		return 0
	}
	for _, part := range f.parts {
		if n := bytes.LastIndex(text, []byte(part)); n >= 0 {
			return n + len(part)
		}
	}
	return 0
}

// ending returns the part of what follows the last words of a text that ends them.
func (f frame) ending(rest string) string {
	if n := strings.Index(rest, f.opening); n >= 0 && f.opening != "" {
		return rest[:n]
	}
	return rest
}
