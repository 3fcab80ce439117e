package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// fromPreference takes the chosen side, after the prompt unless the chosen side repeats it.
func (c *conversation) fromPreference() error {
	c.shape = Preference
	question := ""
	for _, field := range []string{"prompt", "question", "instruction", "input", "query"} {
		if has(c.record, field) {
			question = field
			break
		}
	}
	if _, err := c.marksBeside(-1); err != nil {
		return err
	}
	chosen := c.use("chosen")
	own, isList := chosen.(*jinja.List)
	if text, ok := chosen.(string); ok && question == "" {
		if err := c.addSystem(); err != nil {
			return err
		}
		return c.fromTranscript(text)
	}
	prompt, _ := peek(c.record, question).(*jinja.List)
	if isList && (question == "" || len(own.Items) == 0 || c.startsItself(own, peek(c.record, question))) {
		if text, ok := peek(c.record, question).(string); !ok || repeats(own, text) { // else it is named as not used
			c.use(question)
		}
		if !c.startsWithSystem(own) {
			if err := c.addSystem(); err != nil {
				return err
			}
		}
		if prompt != nil {
			c.prompt = len(c.messages) + len(prompt.Items)
		}
		_, err := c.addList("chosen", own, nil)
		return err
	}
	if question != "" {
		if err := c.addBefore(question); err != nil {
			return err
		}
	}
	return c.addSide("chosen", "assistant")
}

// addBefore adds what stands before an answer: the system message, earlier turns and the question. A question that
// is a list of messages is a prompt.
func (c *conversation) addBefore(question string) error {
	list, isList := peek(c.record, question).(*jinja.List)
	if !isList || !c.startsWithSystem(list) {
		if err := c.addSystem(); err != nil {
			return err
		}
	}
	if err := c.addHistory(); err != nil {
		return err
	}
	if err := c.addSide(question, "user"); err != nil {
		return err
	}
	if isList {
		c.prompt = len(c.messages)
	}
	return nil
}

// preferredField is the better answer of OpenAI's preferences.
const preferredField = "preferred_output"

// fromPreferred takes the preferred side of OpenAI's preferences.
func (c *conversation) fromPreferred() error {
	c.shape = Preference
	input, isObject := c.use("input").(*jinja.Dict)
	var list *jinja.List
	if isObject {
		list, _ = get(input, "messages").(*jinja.List)
	}
	if list == nil {
		return fault.Of(ErrShape, `%q stands without a list of messages in "input"`, preferredField)
	}
	if _, err := c.marksBeside(-1); err != nil {
		return err
	}
	if _, err := c.addList("input.messages", list, nil); err != nil {
		return err
	}
	c.prompt = len(c.messages)
	if tools, err := c.worker.decoder.toolsIn(input, toolFields[0]); err != nil {
		return err
	} else if tools != nil {
		c.tools = tools
	}
	return c.addSide(preferredField, "assistant")
}

// startsItself reports whether the chosen messages begin with the prompt.
func (c *conversation) startsItself(chosen *jinja.List, prompt any) bool {
	list, ok := prompt.(*jinja.List)
	if !ok {
		first, ok := chosen.Items[0].(*jinja.Dict)
		return ok && c.meaning(first) != "assistant"
	}
	if len(list.Items) > len(chosen.Items) {
		return false
	}
	for i, item := range list.Items {
		m, ok := item.(*jinja.Dict)
		other, okOther := chosen.Items[i].(*jinja.Dict)
		if !ok || !okOther || c.meaning(m) != c.meaning(other) {
			return false
		}
		a, okA := contentOf(m).(string)
		b, okB := contentOf(other).(string)
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

// repeats reports whether a message of a list has a text in its content.
func repeats(list *jinja.List, text string) bool {
	return slices.ContainsFunc(list.Items, func(item any) bool {
		m, ok := item.(*jinja.Dict)
		return ok && says(contentOf(m), strings.TrimSpace(text))
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

func (c *conversation) fromPair() error {
	record := c.record
	i := findPair(record)
	if i < 0 {
		return fault.Of(ErrShape, "no conversation in the record, whose fields are %s; "+
			"wanted is one of %s, or chosen, or prompt and completion, or instruction and output, "+
			"or question and answer",
			fields(record)+withoutValue(record), strings.Join(listFields[:2], ", "))
	}
	pair := pairFields[i]
	c.shape = pair.shape
	if _, err := c.marksBeside(-1); err != nil {
		return err
	}
	if err := c.addBefore(pair.question); err != nil {
		return err
	}
	c.addContext(pair.question, pair.answer)
	return c.addSide(pair.answer, "assistant")
}

// addContext adds to a question that is a text what it is about: after an instruction, before a question.
func (c *conversation) addContext(question, answer string) {
	if len(c.messages) == 0 || c.prompt > 0 { // a list of messages, which may be empty
		return
	}
	m := c.messages[len(c.messages)-1]
	text, ok := get(m, "content").(string)
	if !ok {
		return
	}
	for _, field := range []string{"input", "context"} {
		more := textOf(peek(c.record, field))
		switch {
		case field == question || field == answer || field == "input" && question != "instruction" || more == "":
			continue
		case question == "instruction":
			text += "\n\n" + more
		case !strings.Contains(text, more): // else the question has it already
			text = more + "\n\n" + text
		}
		c.suspect.look(more)
		c.use(field)
	}
	m.Set("content", text)
}

// textOf returns a text, or texts in a list with blank lines between them; "" for other values.
func textOf(v any) string {
	list, ok := v.(*jinja.List)
	if !ok {
		s, _ := v.(string)
		return s
	}
	var texts []string
	for _, item := range list.Items {
		s, ok := item.(string)
		if !ok {
			return ""
		}
		texts = append(texts, s)
	}
	return strings.Join(texts, "\n\n")
}

// addHistory adds the turns that a record has in a field before its question: pairs of texts, or messages.
func (c *conversation) addHistory() error {
	for _, field := range historyFields {
		v := peek(c.record, field)
		if s, ok := v.(string); ok {
			if !strings.HasPrefix(strings.TrimSpace(s), "[") {
				continue
			}
			var err error
			if v, err = c.worker.decoder.parse(s); err != nil {
				return fault.Of(ErrShape, "%q is a string but not a JSON list", field)
			}
		}
		history, ok := v.(*jinja.List)
		if !ok {
			continue // it has another meaning
		}
		c.use(field)
		for i, item := range history.Items {
			if m, ok := item.(*jinja.Dict); ok {
				if _, err := c.addList(field, list(m), nil); err != nil {
					return err
				}
				continue
			}
			question, answer, ok := pairOf(item)
			if !ok {
				return fault.Of(ErrShape, "turn %d of %q is not a pair of strings; if it has another meaning, leave it out, "+
					"as with {map}", i+1, field)
			}
			c.add("user", question)
			c.add("assistant", answer)
		}
	}
	return nil
}

// pairOf returns the two texts of a list.
func pairOf(v any) (question, answer string, ok bool) {
	list, ok := v.(*jinja.List)
	if !ok || len(list.Items) != 2 {
		return "", "", false
	}
	question, ok = list.Items[0].(string)
	answer, isText := list.Items[1].(string)
	return question, answer, ok && isText
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
		keys[i] = values.Shorten(keys[i])
	}
	return strings.Join(keys, ", ") + more
}

// shown returns a value for an error, with what it is where that is not seen.
func shown(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the string %q", values.Shorten(v))
	case bool, *jinja.List, *jinja.Dict, nil:
		return kindOf(v)
	}
	return fmt.Sprintf("the number %v", v)
}

// PairOf returns the fields of a prompt and its answer among the names of a record's fields, as they are
// read where the record has no list of messages, and the shape that they make: "" if it has none.
func PairOf(names []string) (prompt, answer string, shape Shape) {
	for _, p := range pairFields {
		if slices.Contains(names, p.question) && slices.Contains(names, p.answer) {
			return p.question, p.answer, p.shape
		}
	}
	for _, answer := range []string{"chosen", preferredField} {
		if slices.Contains(names, answer) {
			return "", answer, Preference
		}
	}
	return "", "", ""
}
