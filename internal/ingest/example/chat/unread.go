package chat

import (
	"slices"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// answeredFor lists the fields of messages that need not be read to count as used: what has become of them is
// counted apart, or the messages that the template is given are made of them.
var answeredFor = slices.Concat([]string{"role", "content", "tool_calls", "function_call"}, reasoningFields, markFields)

// partFields are those that every part of a content has.
var partFields = []string{"type", "text"}

// noteUnread notes the fields with a value that neither this package nor the template has read.
func (t *Text) noteUnread(c *conversation) {
	noteIn := func(d *jinja.Dict, names *[]string, besides []string) {
		d.Unread(func(name string, value any) {
			if jinja.HasValue(value) && !slices.Contains(besides, name) {
				*names = append(*names, name)
			}
		})
	}
	noteIn(c.record, &t.Unread, nil)
	if c.variables != nil {
		for _, name := range c.variables.Keys() {
			known := c.worker.r.plain.template.Uses(name) || c.worker.r.tools.template.Uses(name) || slices.Contains(toolFields, name)
			if !known && jinja.HasValue(peek(c.variables, name)) {
				t.Unread = append(t.Unread, "chat_template_kwargs."+name)
			}
		}
	}
	for _, m := range c.messages {
		noteIn(m, &t.UnreadOfMessages, answeredFor)
	}
	for _, m := range c.apart {
		noteIn(m, &t.UnreadOfMessages, nil)
	}
	for _, part := range c.parted {
		before := len(t.UnreadOfMessages)
		noteIn(part, &t.UnreadOfMessages, partFields)
		for i, name := range t.UnreadOfMessages[before:] {
			t.UnreadOfMessages[before+i] = "content[]." + name
		}
	}
}
