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
