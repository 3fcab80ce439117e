package chat

import (
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/shell"
)

// WhyUntrained returns what to do if no conversation has a token that is trained on. unfound is the number of
// turns to train on that the template did not write; roles are those that mean nothing where nobody is the
// assistant.
func (r *Renderer) WhyUntrained(unfound int64, roles []string) fault.Text {
	if len(roles) > 0 {
		return fault.Textf("no conversation has a turn of the assistant; the first has the roles %s: say what they mean, as "+
			"in {roles} %s=assistant", strings.Join(roles, ", "), shell.Quote(roles[len(roles)-1]))
	}
	if r.HasGeneration() {
		return fault.Textf("the {%% generation %%} blocks of the chat template, which mark what the assistant says, " +
			"were reached by no record; give another {chat-template}, or {train-on} all")
	}
	if unfound == 0 {
		return fault.Textf("no conversation has a turn of the role assistant with content and without a mark against its " +
			"loss, so that no token is trained on; give the turns to learn that role, as with {map}, or pass {train-on} all")
	}
	return fault.Textf("the chat template writes no turn of the role assistant, so that no token is trained on; " +
		"give another {chat-template}, or {train-on} all")
}
