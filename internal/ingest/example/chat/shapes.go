package chat

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// Shape is how a record holds its conversation.
type Shape string

// The shapes.
const (
	Messages         Shape = "messages"          // a list of messages with role and content
	ShareGPT         Shape = "ShareGPT"          // a list of messages with from, or role, and value
	Preference       Shape = "preference"        // chosen, perhaps with a prompt
	PromptCompletion Shape = "prompt-completion" // two fields, strings or lists of messages
	Alpaca           Shape = "Alpaca"            // instruction, input, output
	Question         Shape = "question-answer"
)

// conversation is a record's conversation in the form for a template.
type conversation struct {
	worker    *Worker
	record    *jinja.Dict
	shape     Shape
	field     string // the field that the list of messages is in, if it is in one
	added     int    // how many messages stand before that list
	messages  []*jinja.Dict
	prompt    int // how many of them belong to a prompt, which is not trained on
	tools     any // *jinja.List or nil
	variables *jinja.Dict
	suspect   Suspect
	rejected  bool                 // it has a worse answer, which is left out
	without   bool                 // its record says that nothing of it is trained on
	mapped    []string             // roles of the messages that Options.Roles maps
	marks     map[*jinja.Dict]mark // marks of messages, beside them in the record
	dropped   int                  // messages with reasoning that was left out
	untrained []bool               // messages of the prompt, or that are marked so
	origins   []origin             // one for each message
	apart     []*jinja.Dict        // objects of the list that messages were made of, where they may hold more
	parted    []*jinja.Dict        // parts of contents that have more than a type and a text
}

// origin is which message of the record one is, and the role that it has there.
type origin struct {
	index int
	role  string
}

// use returns the value of a field of the record of which the conversation is made, or which says something of it.
func (c *conversation) use(field string) any { return get(c.record, field) }

// number returns the number of message i in the record's list, from 1 on.
func (c *conversation) number(i int) int { return c.origins[i].index + 1 - c.added }

// at says which message an error is about: the i-th.
func (c *conversation) at(i int, err error) error {
	if errors.Is(err, ErrTooLarge) {
		return err
	}
	return fault.Of(ErrShape, "%s: %v", c.name(i), err)
}

// name names the i-th message of the record.
func (c *conversation) name(i int) string {
	if c.field != "" && i >= c.added {
		return fmt.Sprintf("message %d of %q", i+1-c.added, c.field)
	}
	return fmt.Sprintf("message %d", i+1)
}

// listFields lists the fields that may hold a list of messages.
var listFields = []string{"messages", "conversations", "conversation", "dialog", "dialogue", "chat", "contents"}

// systemFields are the fields that may hold a system message beside the others.
var systemFields = []string{"system", "system_prompt", "system_message", "systemInstruction"}

// historyFields are the fields that may hold the turns before a question and its answer.
var historyFields = []string{"history", "chat_history", "conversation_history"}

// reasoningFields are the fields of a message that may hold the model's reasoning.
var reasoningFields = []string{"reasoning_content", "thinking", "reasoning"}

// saidFields are the fields of which a message without content has one.
var saidFields = append([]string{"tool_calls", "function_call", "tools", "functions"}, reasoningFields...)

// rejectedFields are the fields that may hold a worse answer. The first is said of itself; others are fields that
// nothing uses.
var rejectedFields = []string{"rejected", "rejected_response", "rejected_messages", "non_preferred_output"}

// turnParts are the fields of an object that is a turn of a question and an answer, and their roles, in order.
var turnParts = [][2]string{{"system", "system"}, {"human", "user"}, {"user", "user"}, {"tool", "tool"},
	{"assistant", "assistant"}, {"gpt", "assistant"}, {"bot", "assistant"}}

// pairFields lists pairs of fields that may hold a question and its answer.
var pairFields = []struct {
	question, answer string
	shape            Shape
}{
	{"prompt", "completion", PromptCompletion}, {"prompt", "response", PromptCompletion},
	{"instruction", "output", Alpaca}, {"instruction", "response", Alpaca},
	{"question", "answer", Question}, {"question", "response", Question}, {"query", "response", Question},
	{"query", "answer", Question}, {"input", "output", Question}, {"inputs", "targets", Question},
}

// converse finds the conversation of a record.
func (w *Worker) converse(record *jinja.Dict) (*conversation, error) {
	c := &conversation{worker: w, record: record}
	var err error
	switch field := listField(record); {
	case field != "":
		err = c.fromList(field)
	case has(record, "chosen"):
		err = c.fromPreference()
	case has(record, preferredField):
		err = c.fromPreferred()
	default:
		err = c.fromPair()
	}
	if err != nil {
		return nil, err
	}
	if len(c.messages) == 0 {
		return nil, fault.Of(ErrShape, "the conversation is empty")
	}
	if err := c.checkLabel(); err != nil {
		return nil, err
	}
	if err := c.checkMedia(); err != nil {
		return nil, err
	}
	for _, field := range rejectedFields {
		switch v := peek(record, field).(type) {
		case string, *jinja.List, *jinja.Dict:
			c.rejected = c.rejected || jinja.HasValue(v)
		}
	}
	c.use(rejectedFields[0])
	if err := c.findTools(); err != nil {
		return nil, err
	}
	return c, c.findVariables()
}

// findVariables sets the variables of the template that the record has.
func (c *conversation) findVariables() error {
	const field = "chat_template_kwargs"
	v := peek(c.record, field)
	if s, ok := v.(string); ok && strings.HasPrefix(strings.TrimSpace(s), "{") {
		var err error
		if v, err = c.worker.decoder.parse(s); errors.Is(err, ErrTooLarge) {
			return err
		} else if err != nil {
			return fault.Of(ErrShape, "%q is a string but not a JSON object: %v", field, err)
		}
	}
	if variables, ok := v.(*jinja.Dict); ok {
		if notEmpty(c.tools) && notEmpty(peek(variables, "tools")) && !variables.WasRead("tools") {
			return fault.Of(ErrShape, "it has tools of its own and in %q; leave one of them out, as with {map}", field)
		}
		c.variables = variables
		c.use(field)
	}
	return nil
}

// NewReader returns a worker for Shape alone.
func NewReader() *Worker { return (&Renderer{}).NewWorker(nil) }

// Shape returns how a record, a JSON object or a row of columns, holds its conversation.
func (w *Worker) Shape(data []byte, columns []string, at func(column int) []byte) (Shape, error) {
	defer w.decoder.Clean()
	decode := func() (*jinja.Dict, error) { return w.decoder.decode(data) }
	if columns != nil {
		decode = func() (*jinja.Dict, error) { return w.decoder.decodeRow(columns, at, len(data)) }
	}
	record, err := decode()
	if err != nil {
		return "", err
	}
	c, err := w.converse(record)
	if err != nil {
		return "", err
	}
	return c.shape, nil
}

func get(d *jinja.Dict, field string) any {
	v, _ := d.Get(field)
	return v
}

// peek returns the value of a field that may have another meaning. Unlike get it does not count as reading it.
func peek(d *jinja.Dict, field string) any {
	v, _ := d.Peek(field)
	return v
}

func has(d *jinja.Dict, field string) bool { return peek(d, field) != nil }

// listField returns the first field of a list of messages that the record has, "" if it has none. A
// field without a value counts only if there is no other.
func listField(record *jinja.Dict) string {
	for _, field := range listFields {
		if has(record, field) {
			return field
		}
	}
	if _, exists := record.Get("messages"); exists && !has(record, "chosen") && findPair(record) < 0 {
		return "messages"
	}
	return ""
}

func (c *conversation) fromList(field string) error {
	list, ok := c.use(field).(*jinja.List)
	if !ok {
		return fault.Of(ErrShape, "%q is %s, not a list of messages", field, kindOf(peek(c.record, field)))
	}
	marks, err := c.marksBeside(len(list.Items))
	if err != nil {
		return err
	}
	if !c.startsWithSystem(list) {
		if err := c.addSystem(); err != nil {
			return err
		}
	}
	c.field, c.added = field, len(c.messages)
	if c.shape, err = c.addList(field, list, marks); err != nil {
		return err
	}
	if n := len(c.messages); n > 0 && has(c.record, "chosen") && c.meaning(c.messages[n-1]) != "assistant" {
		c.prompt = n
		return c.addSide("chosen", "assistant")
	}
	return nil
}

// meaning returns the role that a message has for templates.
func (c *conversation) meaning(m *jinja.Dict) string {
	own, ok := get(m, "role").(string)
	if !ok {
		own, _ = get(m, "from").(string)
	}
	role, _ := c.worker.r.opts.meaning(own)
	return role
}

// contentOf returns the content of a message as the record writes it.
func contentOf(m *jinja.Dict) any {
	if content := get(m, "content"); content != nil {
		return content
	}
	return get(m, "value")
}

// startsWithSystem reports whether a list begins with a system message.
func (c *conversation) startsWithSystem(list *jinja.List) bool {
	if len(list.Items) == 0 {
		return false
	}
	m, ok := list.Items[0].(*jinja.Dict)
	return ok && (c.meaning(m) == "system" || has(m, "system"))
}

// addList adds the messages of a list with their marks, if there are some, and returns their shape.
func (c *conversation) addList(field string, list *jinja.List, marks []mark) (shape Shape, err error) {
	shape = Messages
	c.messages = slices.Grow(c.messages, len(list.Items))
	for i, item := range list.Items {
		if s, ok := item.(string); ok && strings.HasPrefix(s, "{") { // lists of a table may hold texts
			if item, err = c.worker.decoder.parse(s); err != nil {
				return "", fault.Of(ErrShape, "message %d of %q is a string but not a JSON object: %v", i+1, field, err)
			}
		}
		m, ok := item.(*jinja.Dict)
		if !ok {
			return "", fault.Of(ErrShape, "message %d of %q is %s, not an object", i+1, field, kindOf(item))
		}
		before := len(c.messages)
		hasRole, hasContent := has(m, "role"), has(m, "content")
		switch {
		case !hasRole && has(m, "from"), !hasContent && has(m, "value"):
			shape = ShareGPT
			c.takeApart(m)
			c.messages = append(c.messages, fromShareGPT(m))
		case !hasRole && c.addTurn(m):
			shape = ShareGPT
			c.takeApart(m)
		case !hasContent && has(m, "parts"):
			c.messages = append(c.messages, with(m, "content", ofParts(get(m, "parts"))))
		default:
			c.messages = append(c.messages, m)
		}
		for _, m := range c.messages[before:] {
			if err := c.checkMessage(m, shape); err != nil {
				return "", fault.Of(ErrShape, "message %d of %q: %v", i+1, field, err)
			}
		}
		if marks != nil {
			c.mark(c.messages[before:], marks[i])
		}
	}
	return shape, nil
}

// ofParts returns the content that Google's parts are: one text as such.
func ofParts(parts any) any {
	if list, ok := parts.(*jinja.List); ok && len(list.Items) == 1 {
		if part, ok := list.Items[0].(*jinja.Dict); ok && part.Len() == 1 && has(part, "text") {
			return get(part, "text")
		}
	}
	return parts
}

// takeApart remembers an object that messages are made of, for its fields that none of them has.
func (c *conversation) takeApart(m *jinja.Dict) {
	if !bare(m) {
		c.apart = append(c.apart, m)
	}
}

// addTurn adds the messages of an object that is a turn, and reports whether it is one.
func (c *conversation) addTurn(turn *jinja.Dict) bool {
	before := len(c.messages)
	for _, part := range turnParts {
		if content := get(turn, part[0]); content != nil && (content != "" || part[1] != "system") {
			c.add(part[1], content)
		}
	}
	return len(c.messages) > before
}

func (c *conversation) add(role string, content any) {
	c.messages = append(c.messages, message(role, content))
}

func fromShareGPT(m *jinja.Dict) *jinja.Dict {
	role := get(m, "from")
	if role == nil {
		role = get(m, "role")
	}
	value, exists := m.Get("value")
	if !exists {
		value = get(m, "content")
	}
	out := message(role, value)
	for _, key := range m.Keys() {
		if key != "from" && key != "value" && key != "role" && key != "content" {
			out.Set(key, get(m, key))
		}
	}
	return out
}
