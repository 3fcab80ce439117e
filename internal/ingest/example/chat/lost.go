package chat

import (
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
)

// lostError returns the error of a conversation of which the template leaves out what some messages say: which is
// the first, and what writes it.
func (j *rendering) lostError(lost []int) error {
	first := j.origins[lost[0]]
	role := first.role
	others := ""
	if n := len(lost) - 1; n > 0 {
		others = fmt.Sprintf(", nor of %d more", n)
	}
	what := "what it says"
	if parts := j.parts(j.messages[lost[0]]); parts != nil && len(parts.Items) > 1 {
		what = "a part of what it says"
	}
	err := fault.Of(ErrTemplate, "%s, of the role %s: the chat template writes nothing of %s%s, and a model would be "+
		"trained without it",
		j.name(first.index), values.Shorten(role), what, others)
	candidates := []string{"user", "assistant", "system"}
	switch meaning, _ := j.r.opts.meaning(role); meaning {
	case "user", "assistant":
		candidates = nil
	case "system", "tool":
		candidates = candidates[:1]
	}
	candidates = slices.DeleteFunc(candidates, func(as string) bool { return !j.writes(role, as) })
	if len(candidates) == 0 {
		if slices.ContainsFunc(lost[1:], func(i int) bool { return isAssistant(j.messages[i]) }) {
			return fault.Advise(err, "give another {chat-template}: this one leaves out what the assistant says, too")
		}
		return fault.Advise(err, "give another {chat-template}, or leave out such messages")
	}
	advice := fmt.Sprintf("%s=%s writes it", role, candidates[0])
	if len(candidates) > 1 {
		advice += ", as the roles " + strings.Join(candidates[1:], " and ") + " do"
	}
	return fault.Advise(err, "{roles} %s; or give another {chat-template}", advice)
}

// writes reports whether the conversation would be written whole if the messages that have a role in the record had
// another.
func (j *rendering) writes(role, as string) bool {
	c := *j.conversation
	c.messages = slices.Clone(c.messages)
	for i, m := range c.messages {
		if c.origins[i].role == role {
			c.messages[i] = with(m, "role", as)
		}
	}
	lost, err := (&rendering{Worker: j.Worker, conversation: &c, form: j.form, size: j.size}).attempt(new(Text))
	return err == nil && len(lost) == 0
}
