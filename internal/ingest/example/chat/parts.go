package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// A content is a string or a list of parts, and a template may take one of them or both. Which it takes is found
// by asking it (see habits): it takes a form if its text has the words, and not the fields of the parts, which
// Python's str or JSON of a list would write.

// contents says what contents of a role a template takes.
type contents struct {
	strings bool
	one     bool // a list of one part
	several bool // a list of more
}

func onlyStrings(any) contents { return contents{strings: true} }

// media are what parts may hold besides text, by the word that names it in their types, and their fields.
var media = [...][2]string{{"image", "an image"}, {"audio", "audio"}, {"video", "a video"}}

// mediumOf says which of media a part is, "" if none.
func mediumOf(part *jinja.Dict) string {
	kind, _ := get(part, "type").(string)
	for _, m := range media {
		if strings.Contains(kind, m[0]) || kind == "" && (has(part, m[0]) || has(part, m[0]+"_url")) {
			return m[1]
		}
	}
	return ""
}

// unifyParts gives the text in lists of parts the form {"type": "text", "text": …}, and reports whether there are
// such lists. A row holds text alone, so that other media are refused.
func (c *conversation) unifyParts() (lists bool, err error) {
	for i, m := range c.messages {
		parts := c.parts(m)
		if parts == nil {
			continue
		}
		lists = true
		unified := list(slices.Clone(parts.Items)...)
		for k, item := range unified.Items {
			part, ok := item.(*jinja.Dict)
			if !ok {
				unified.Items[k] = textPart(item)
				continue
			}
			if m := mediumOf(part); m != "" {
				return true, c.at(c.origins[i].index, fault.Errorf("part %d of its content is %s, and a row holds text "+
					"alone: what is said about it would be learned without it; leave out the part, or the record", k+1, m))
			}
			switch text, isText := get(part, "text").(string); get(part, "type") {
			case nil, "input_text", "output_text":
				if isText {
					part = with(with(part, "type", "text"), "text", text)
					unified.Items[k] = part
				}
			}
			if part.Len() > 2 {
				c.parted = append(c.parted, part)
			}
		}
		c.messages[i] = with(m, "content", unified)
	}
	return lists, nil
}

// checkMedia refuses a conversation with media beside it, where a message says at which place they belong.
func (c *conversation) checkMedia() error {
	for _, m := range media {
		field := m[0]
		if !jinja.HasValue(peek(c.record, field)) {
			field += "s"
		}
		if !jinja.HasValue(peek(c.record, field)) {
			continue
		}
		place := "<" + m[0]
		if i := slices.IndexFunc(c.messages, func(m *jinja.Dict) bool { return says(peek(m, "content"), place) }); i >= 0 {
			return fault.Of(ErrShape, "message %d has %s> in it, which stands for what is in %q, and a row holds text alone: "+
				"what is said about it would be learned without it; if it is text, take the field out with {map}", i+1, place, field)
		}
	}
	return nil
}

// parts returns the content of a message if it is a list of parts, else nil. That of a tool may be any value.
func (c *conversation) parts(m *jinja.Dict) *jinja.List {
	parts, _ := get(m, "content").(*jinja.List)
	if parts != nil && c.meaning(m) == "tool" && len(parts.Items) > 0 && !areParts(parts) {
		return nil
	}
	return parts
}

func textPart(text any) *jinja.Dict { return dict("type", "text", "text", text) }

// with returns a message, or a part of one, with another value of a field.
func with(m *jinja.Dict, field string, value any) *jinja.Dict {
	m = m.Clone()
	m.Set(field, value)
	return m
}

// fit gives contents the form that takes says, by the role of the message.
func (c *conversation) fit(takes func(role any) contents) error {
	messages := slices.Clone(c.messages)
	for i, m := range messages {
		t, parts := takes(get(m, "role")), c.parts(m)
		if parts == nil {
			if text, ok := get(m, "content").(string); ok && !t.strings && t.one {
				messages[i] = with(m, "content", list(textPart(text)))
			}
			continue
		}
		text, other := joinedText(parts)
		n := len(parts.Items)
		switch {
		case n <= 1 && t.one, n > 1 && t.several:
		case other >= 0:
			return c.at(c.origins[i].index, fault.Errorf("part %d of its content is not text, with the fields %s, and the "+
				"chat template takes text only", other+1, fields(parts.Items[other].(*jinja.Dict))))
		case t.strings:
			messages[i] = with(m, "content", text)
		case t.one:
			messages[i] = with(m, "content", list(textPart(text)))
		}
	}
	c.messages = messages
	return nil
}

// joinedText returns the text of a list of parts, a line for each. Where not all are text, other is the first that is not.
func joinedText(list *jinja.List) (text string, other int) {
	for k, item := range list.Items {
		s, ok := get(item.(*jinja.Dict), "text").(string)
		if !ok {
			return "", k
		}
		if text != "" {
			text += "\n"
		}
		text += s
	}
	return text, -1
}

// otherwise renders the conversation with its contents in the other form: strings as lists where the template
// takes those alone, and lists, which it may yet leave out, as strings.
func (j *rendering) otherwise(dst *Text, lists bool) (other *rendering, lost []int, err error) {
	c, takes := *j.conversation, j.habits().contents
	if lists {
		takes = onlyStrings
	}
	if err := c.fit(takes); err != nil {
		return nil, nil, err
	}
	if slices.Equal(c.messages, j.messages) {
		return nil, nil, errSame
	}
	other = &rendering{Worker: j.Worker, conversation: &c, form: j.form, size: j.size}
	lost, err = other.attempt(dst)
	return other, lost, err
}

// takesListsAlone reports whether there are contents that are strings, which the template takes as lists alone.
func (j *rendering) takesListsAlone() bool {
	return slices.ContainsFunc(j.messages, func(m *jinja.Dict) bool {
		if _, isText := peek(m, "content").(string); !isText {
			return false
		}
		t := j.habits().contents(peek(m, "role"))
		return !t.strings && t.one
	})
}

var errSame = errors.New("there is no other form")

// contents returns which contents of a role the template takes. What is not known is as a user's.
func (h *habits) contents(role any) contents {
	for _, role := range [...]any{role, "user"} {
		name, _ := role.(string)
		takes := known(h.takesContents, name, func() contents {
			return contents{h.takesParts(name, 0), h.takesParts(name, 1), h.takesParts(name, 2)}
		})
		if takes != (contents{}) {
			return takes
		}
	}
	return onlyStrings(role)
}

// askedField is a field of parts, which only what writes all of their fields writes.
const askedField = "zqfieldzq"

// askedContent returns a content of so many parts, a string if 0, and its words.
func askedContent(parts int) (content any, words []string) {
	all := &jinja.List{}
	for k := range parts {
		words = append(words, fmt.Sprintf("%s%d.", asked, k))
		all.Items = append(all.Items, dict("type", "text", "text", words[k], askedField, askedField))
	}
	if parts == 0 {
		return asked, []string{asked}
	}
	return all, words
}

// takesParts reports whether the template writes contents of a role that are lists of so many parts, strings if 0.
// Those of others are strings, or else lists too.
func (h *habits) takesParts(role string, parts int) bool {
	content, words := askedContent(parts)
	for _, others := range [...]any{"Hi", list(textPart("Hi"))} {
		m, user, assistant := message(role, content), message("user", others), message("assistant", others)
		var messages []any
		var tools any
		switch role {
		case "system":
			messages = []any{m, user, assistant}
		case "user":
			messages = []any{m, assistant, m, assistant}
		case "assistant":
			messages = []any{user, m, user, m}
		case "tool":
			messages, tools = []any{user, h.call(), result(role, content), assistant}, aTool("f")
		}
		for _, messages := range [...][]any{messages, append([]any{message("system", others)}, messages...)} {
			text := h.render(tools, messages...)
			if text != "" && !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, word) }) {
				return !strings.Contains(text, askedField)
			}
		}
	}
	return false
}
