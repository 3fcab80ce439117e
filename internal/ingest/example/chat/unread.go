package chat

import (
	"slices"

	"github.com/dsload/dsload/internal/ingest/jinja"
)

// answeredFor lists the fields of messages that need not be read to count as used: what has become of them is
// counted apart, or the messages that the template is given are made of them.
var answeredFor = slices.Concat([]string{"role", "content", "tool_calls", "function_call"}, reasoningFields, markFields)

// noteUnread notes the fields that neither this package nor the template has read.
func (t *Text) noteUnread(record *jinja.Dict, messages []*jinja.Dict) {
	t.Unread = appendUnread(t.Unread, record)
	for _, m := range messages {
		t.UnreadOfMessages = appendUnread(t.UnreadOfMessages, m)
	}
	t.UnreadOfMessages = slices.DeleteFunc(t.UnreadOfMessages,
		func(name string) bool { return slices.Contains(answeredFor, name) })
}

// appendUnread appends the names of the fields with a value that nothing has read.
func appendUnread(names []string, d *jinja.Dict) []string {
	d.Unread(func(name string, value any) {
		if jinja.HasValue(value) {
			names = append(names, name)
		}
	})
	return names
}
