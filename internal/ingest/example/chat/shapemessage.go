package chat

import (
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// checkMessage returns an error if m is not a valid message.
func (c *conversation) checkMessage(m *jinja.Dict, shape Shape) error {
	own, ok := get(m, "role").(string)
	if given := get(m, "role"); given != nil && !ok {
		return fault.Errorf("its role is %s, not a string", shown(given))
	}
	if own == "" {
		return fault.Errorf("it has no role; its fields are %s", fields(m))
	}
	if shape == ShareGPT && knownRoles[c.meaning(m)] == "" {
		return fault.Errorf("its role %q is not known; say what it means, as in {roles} %s=user", values.Shorten(own), values.Shorten(own))
	}
	switch content := get(m, "content").(type) {
	case string:
	case nil:
		if !slices.ContainsFunc(saidFields, func(field string) bool { return has(m, field) }) {
			return fault.Errorf("it, of role %q, has no content", values.Shorten(own))
		}
	case *jinja.List:
		if c.meaning(m) == "tool" || isCallRole(own) {
			return nil
		}
		for i, part := range content.Items {
			switch p := part.(type) {
			case string:
			case *jinja.Dict:
				if !has(p, "type") && !has(p, "text") {
					return fault.Errorf("part %d of its content has no type; its fields are %s", i+1, fields(p))
				}
			default:
				return fault.Errorf("part %d of its content is %s, not an object", i+1, kindOf(part))
			}
		}
	default:
		if c.meaning(m) != "tool" && !isCallRole(own) {
			return fault.Errorf("its content is %s, not a string", kindOf(content))
		}
	}
	return nil
}

// fromTranscript reads a conversation in one string, as in the HH-RLHF data.
func (c *conversation) fromTranscript(text string) error {
	const human, assistant = "\n\nHuman:", "\n\nAssistant:"
	if !strings.HasPrefix(text, "\n\n") {
		text = "\n\n" + text
	}
	if !strings.HasPrefix(text, human) && !strings.HasPrefix(text, assistant) {
		return fault.Of(ErrShape, `"chosen" is a text without a prompt next to it, `+
			`and without turns that begin with "Human:" and "Assistant:"`)
	}
	for text != "" {
		role, mark := "user", human
		if strings.HasPrefix(text, assistant) {
			role, mark = "assistant", assistant
		}
		text = text[len(mark):]
		end := len(text)
		for _, mark := range []string{human, assistant} {
			if i := strings.Index(text, mark); i >= 0 {
				end = min(end, i)
			}
		}
		c.add(role, strings.TrimSpace(text[:end]))
		text = text[end:]
	}
	return nil
}

// addSystem adds the system message that a record has beside the others.
func (c *conversation) addSystem() error {
	for _, field := range systemFields {
		content := peek(c.record, field)
		if s, ok := content.(string); ok && s == "" || content == nil {
			continue
		}
		if d, ok := content.(*jinja.Dict); ok {
			if content = get(d, "content"); content == nil {
				content = ofParts(get(d, "parts"))
			}
		}
		m := message("system", content)
		if err := c.checkMessage(m, Messages); err != nil {
			return fault.Of(ErrShape, "%q beside the conversation: %v", field, err)
		}
		c.use(field)
		c.messages = append(c.messages, m)
		return nil
	}
	return nil
}

// addSide adds a string as one message, a message, or a list of messages.
func (c *conversation) addSide(field, role string) error {
	switch v := c.use(field).(type) {
	case string:
		if s := strings.TrimSpace(v); beginsMessages(s) && writtenByPython(s) {
			return fault.Of(ErrShape, "%q is a string but not a JSON list: %v", field, errPython)
		}
		c.suspect.look(v)
		c.add(role, v)
		return nil
	case *jinja.Dict:
		_, err := c.addList(field, list(v), nil)
		return err
	case *jinja.List:
		_, err := c.addList(field, v, nil)
		return err
	default:
		return fault.Of(ErrShape, "%q is %s, neither a string nor a list of messages", field, kindOf(v))
	}
}
