package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat/jinja"
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
	shape     Shape
	messages  []*jinja.Dict
	prompt    int // how many of them belong to a prompt, which is not trained on
	tools     any // *jinja.List or nil
	variables *jinja.Dict
	untrained []bool // messages of the prompt, or that carry the weight 0
}

// listFields lists the fields that may hold a list of messages.
var listFields = []string{"messages", "conversations", "conversation", "dialog", "dialogue", "chat"}

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
func converse(record *jinja.Dict) (*conversation, error) {
	c := &conversation{}
	var err error
	switch field := listField(record); {
	case field != "":
		err = c.fromList(record, field)
	case has(record, "chosen"):
		err = c.fromPreference(record)
	default:
		err = c.fromPair(record)
	}
	if err != nil {
		return nil, err
	}
	if len(c.messages) == 0 {
		return nil, fault.Of(ErrShape, "the conversation is empty")
	}
	if err := c.findTools(record); err != nil {
		return nil, err
	}
	if kwargs, ok := get(record, "chat_template_kwargs").(*jinja.Dict); ok {
		c.variables = kwargs
	}
	return c, nil
}

func get(d *jinja.Dict, field string) any {
	v, _ := d.Get(field)
	return v
}

func has(d *jinja.Dict, field string) bool { return get(d, field) != nil }

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

func (c *conversation) fromList(record *jinja.Dict, field string) (err error) {
	list, ok := get(record, field).(*jinja.List)
	if !ok {
		return fault.Of(ErrShape, "%q is %s, not a list of messages", field, kindOf(get(record, field)))
	}
	if system, ok := get(record, "system").(string); ok && system != "" && field != "messages" {
		c.add("system", system)
	}
	before := len(c.messages)
	if c.shape, err = c.addList(field, list); err != nil {
		return err
	}
	if before > 0 && len(c.messages) > 1 && get(c.messages[1], "role") == "system" {
		c.messages = c.messages[1:] // the conversation has its own
	}
	return nil
}

// addList adds the messages of a list and returns their shape.
func (c *conversation) addList(field string, list *jinja.List) (shape Shape, err error) {
	shape = Messages
	c.messages = slices.Grow(c.messages, len(list.Items))
	for i, item := range list.Items {
		m, ok := item.(*jinja.Dict)
		if !ok {
			return "", fault.Of(ErrShape, "message %d of %q is %s, not an object", i+1, field, kindOf(item))
		}
		if has(m, "from") && !has(m, "role") || has(m, "value") && !has(m, "content") {
			shape = ShareGPT
			if m, err = fromShareGPT(m); err != nil {
				return "", fault.Of(ErrShape, "message %d of %q: %v", i+1, field, err)
			}
		}
		if err := checkMessage(m); err != nil {
			return "", fault.Of(ErrShape, "message %d of %q: %v", i+1, field, err)
		}
		c.messages = append(c.messages, m)
	}
	return shape, nil
}

func (c *conversation) add(role, content string) {
	m := &jinja.Dict{}
	m.Set("role", role)
	m.Set("content", content)
	c.messages = append(c.messages, m)
}

// shareGPTRoles maps the values of ShareGPT's "from" to roles.
var shareGPTRoles = map[string]string{
	"human": "user", "user": "user", "gpt": "assistant", "assistant": "assistant", "chatgpt": "assistant",
	"bing": "assistant", "bard": "assistant", "bot": "assistant", "model": "assistant", "claude": "assistant",
	"function_call": "assistant", "system": "system", "tool": "tool", "function": "tool", "observation": "tool",
	"function_response": "tool", "tool_response": "tool", "developer": "developer",
}

func fromShareGPT(m *jinja.Dict) (*jinja.Dict, error) {
	from, ok := get(m, "from").(string)
	if !ok {
		from, _ = get(m, "role").(string)
	}
	role := shareGPTRoles[strings.ToLower(from)]
	if role == "" {
		return nil, fmt.Errorf("its role %q is not known", shorten(fmt.Sprint(from)))
	}
	out := &jinja.Dict{}
	out.Set("role", role)
	value, exists := m.Get("value")
	if !exists {
		value = get(m, "content")
	}
	out.Set("content", value)
	for _, key := range m.Keys() {
		if key != "from" && key != "value" && key != "role" && key != "content" {
			out.Set(key, get(m, key))
		}
	}
	return out, nil
}

// checkMessage returns an error if m is not a valid message.
func checkMessage(m *jinja.Dict) error {
	role, ok := get(m, "role").(string)
	if !ok || role == "" {
		return fmt.Errorf("it has no role; its fields are %s", fields(m))
	}
	switch content := get(m, "content").(type) {
	case string:
	case nil:
		if !has(m, "tool_calls") && !has(m, "function_call") && !has(m, "reasoning_content") && !has(m, "thinking") {
			return fmt.Errorf("it, of role %q, has no content", shorten(role))
		}
	case *jinja.List:
		for i, part := range content.Items {
			switch p := part.(type) {
			case string:
			case *jinja.Dict:
				if !has(p, "type") && !has(p, "text") {
					return fmt.Errorf("part %d of its content has no type; its fields are %s", i+1, fields(p))
				}
			default:
				return fmt.Errorf("part %d of its content is %s, not an object", i+1, kindOf(part))
			}
		}
	default:
		return fmt.Errorf("its content is %s, not a string", kindOf(content))
	}
	return nil
}

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

func (c *conversation) addSystem(record *jinja.Dict) {
	for _, field := range []string{"system", "system_prompt"} {
		if s, ok := get(record, field).(string); ok && s != "" {
			c.add("system", s)
			return
		}
	}
}

// addSide adds a string as one message, or a list of messages.
func (c *conversation) addSide(record *jinja.Dict, field, role string) error {
	switch v := get(record, field).(type) {
	case string:
		c.add(role, v)
		return nil
	case *jinja.List:
		_, err := c.addList(field, v)
		return err
	default:
		return fault.Of(ErrShape, "%q is %s, neither a string nor a list of messages", field, kindOf(v))
	}
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

func (c *conversation) fromPair(record *jinja.Dict) error {
	i := findPair(record)
	if i < 0 {
		return fault.Of(ErrShape, "no conversation in the record, whose fields are %s; "+
			"wanted is one of %s, or chosen, or prompt and completion, or instruction and output, "+
			"or question and answer",
			fields(record), strings.Join(listFields[:2], ", "))
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
