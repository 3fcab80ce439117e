package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat/jinja"
)

// fromPreference takes the chosen side, after the prompt unless the chosen side repeats it.
func (c *conversation) fromPreference(record *jinja.Dict) error {
	c.shape = Preference
	question := ""
	for _, field := range []string{"prompt", "question", "instruction", "input", "query"} {
		if has(record, field) {
			question = field
			break
		}
	}
	c.addSystem(record)
	prompt, _ := get(record, question).(*jinja.List)
	switch chosen := get(record, "chosen").(type) {
	case *jinja.List:
		before := len(c.messages)
		if _, err := c.addList("chosen", chosen); err != nil {
			return err
		}
		own := c.messages[before:]
		if question == "" || len(own) == 0 || startsItself(own, get(record, question)) {
			if len(own) > 0 && get(own[0], "role") == "system" {
				c.messages, before = own, 0
			}
			if prompt != nil {
				c.prompt = before + len(prompt.Items)
			}
			return nil
		}
		c.messages = c.messages[:before:before]
		if err := c.addSide(record, question, "user"); err != nil {
			return err
		}
		if prompt != nil {
			c.prompt = len(c.messages)
		}
		c.messages = append(c.messages, own...)
		return nil
	case string:
		if question == "" {
			return c.fromTranscript(chosen)
		}
		if err := c.addSide(record, question, "user"); err != nil {
			return err
		}
		if prompt != nil {
			c.prompt = len(c.messages)
		}
		c.add("assistant", chosen)
		return nil
	}
	return fault.Of(ErrShape, `"chosen" is %s, neither a string nor a list of messages`, kindOf(get(record, "chosen")))
}

// startsItself reports whether the chosen messages begin with the prompt.
func startsItself(chosen []*jinja.Dict, prompt any) bool {
	list, ok := prompt.(*jinja.List)
	if !ok {
		return get(chosen[0], "role") != "assistant"
	}
	if len(list.Items) > len(chosen) || len(list.Items) == 0 {
		return len(list.Items) == 0
	}
	for i, item := range list.Items {
		m, ok := item.(*jinja.Dict)
		if !ok || get(m, "role") != get(chosen[i], "role") {
			return false
		}
		a, okA := get(m, "content").(string)
		b, okB := get(chosen[i], "content").(string)
		if !okA || !okB || a != b {
			return false
		}
	}
	return true
}

// findPair returns which of pairFields a record has, -1 if it has none.
func findPair(record *jinja.Dict) int {
	return slices.IndexFunc(pairFields, func(p struct {
		question, answer string
		shape            Shape
	}) bool {
		return has(record, p.question) && has(record, p.answer)
	})
}

// withoutValue names the fields that are null, or empty in a CSV file.
func withoutValue(record *jinja.Dict) string {
	empty := record.Without(func(_ string, value any) bool { return value != nil })
	if len(empty.Keys()) == 0 {
		return ""
	}
	return ", without a value in " + fields(empty)
}

func (c *conversation) fromPair(record *jinja.Dict) error {
	i := findPair(record)
	if i < 0 {
		return fault.Of(ErrShape, "no conversation in the record, whose fields are %s; "+
			"wanted is one of %s, or chosen, or prompt and completion, or instruction and output, "+
			"or question and answer",
			fields(record)+withoutValue(record), strings.Join(listFields[:2], ", "))
	}
	pair := pairFields[i]
	c.shape = pair.shape
	c.addSystem(record)
	if history, ok := get(record, "history").(*jinja.List); ok && pair.shape == Alpaca {
		for i, item := range history.Items {
			turn, ok := item.(*jinja.List)
			if !ok || len(turn.Items) != 2 {
				return fault.Of(ErrShape, `turn %d of "history" is not a pair of strings`, i+1)
			}
			for j, role := range []string{"user", "assistant"} {
				s, ok := turn.Items[j].(string)
				if !ok {
					return fault.Of(ErrShape, `turn %d of "history" is not a pair of strings`, i+1)
				}
				c.add(role, s)
			}
		}
	}
	if err := c.addSide(record, pair.question, "user"); err != nil {
		return err
	}
	if pair.question == "instruction" {
		for _, field := range []string{"input", "context"} {
			if more, ok := get(record, field).(string); ok && more != "" {
				m := c.messages[len(c.messages)-1]
				if s, ok := get(m, "content").(string); ok {
					m.Set("content", s+"\n\n"+more)
				}
				break
			}
		}
	}
	if _, ok := get(record, pair.question).(*jinja.List); ok {
		c.prompt = len(c.messages)
	}
	return c.addSide(record, pair.answer, "assistant")
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a truth value"
	case *jinja.List:
		return "a list"
	case *jinja.Dict:
		return "an object"
	}
	return "a number"
}

const maxFieldsTold = 20

// fields lists the names of a record's fields.
func fields(d *jinja.Dict) string {
	keys := d.Keys()
	if len(keys) == 0 {
		return "none"
	}
	more := ""
	if len(keys) > maxFieldsTold {
		keys, more = keys[:maxFieldsTold], ", …"
	}
	for i := range keys {
		keys[i] = shorten(keys[i])
	}
	return strings.Join(keys, ", ") + more
}

func shorten(s string) string {
	if len(s) > 100 {
		return fmt.Sprintf("%.100q…", s)
	}
	return s
}
