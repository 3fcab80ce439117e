package ingest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/work"
	"github.com/dsload/dsload/internal/shell"
)

// openChat finds the chat template where the inputs hold conversations.
func (b *build) openChat(ctx context.Context) error {
	o := &b.opts
	inputs, all := 0, 0
	for _, p := range b.phases {
		formats := p.set.Formats()
		inputs, all = inputs+formats[source.Chat]+formats[source.JSONChat], all+p.set.Len()
	}
	if inputs == 0 && o.Format != source.Chat {
		return b.refuseChatOptions()
	}
	if inputs < all && o.Format != source.Chat {
		return fault.BadOption("format", string(o.Format),
			"%d of %d inputs hold conversations and the others do not; "+
				"build them separately, or read all of them as {format} chat or {format} jsonl", inputs, all)
	}
	if o.CausalPairs {
		return fault.BadOption("causal-pairs", nil,
			"the inputs hold conversations, whose loss mask comes from their roles; leave the option out")
	}
	if o.Format != source.Chat {
		b.notice("the records are conversations, read as {format} chat; " +
			"{text-field} or {template} reads them otherwise")
	}
	if err := b.openRenderer(); err != nil && o.Format != source.Chat {
		return fault.Advise(err, "the records hold conversations, as lists of messages or ShareGPT's; "+
			"{text-field} or {template} reads them otherwise")
	} else if err != nil {
		return err
	}
	if o.EOS == "" { // packed or not, the template writes the end of a conversation
		o.EOS = option.NoToken
	}
	return b.openCutter(ctx)
}

// refuseChatOptions refuses options about conversations where there are none.
func (b *build) refuseChatOptions() error {
	o := &b.opts
	for _, option := range []struct {
		name  fault.Option
		value string
		given bool
	}{
		{"chat-template", o.ChatTemplate, o.ChatTemplate != ""}, {"date", o.Date, o.Date != ""},
		{"train-on", string(o.TrainOn), o.TrainOn != chat.TrainAssistant},
		{"reasoning", string(o.Reasoning), o.Reasoning != chat.KeepReasoning},
		{"split-turns", "", o.SplitTurns},
		{"roles", strings.Join(o.Roles, ","), len(o.Roles) > 0},
	} {
		if option.given {
			return fault.BadOption(option.name, option.value,
				"no conversations were found in the sources; if they hold some, give {format} chat")
		}
	}
	return nil
}

func (b *build) openRenderer() error {
	o := &b.opts
	roles, err := chat.ParseRoles(o.Roles)
	if err != nil {
		return fault.BadOption("roles", strings.Join(o.Roles, ","), "%v", err)
	}
	r, c, err := chat.OpenRenderer(b.tokenizer, o.Tokenizer, o.ChatTemplate, o.Date,
		chat.Options{TrainOn: o.TrainOn, Reasoning: o.Reasoning, SplitTurns: o.SplitTurns, Roles: roles})
	if err != nil {
		return err
	}
	b.chat = &work.Conversations{Renderer: r, Pieces: r.NewPieces(b.tokenizer), Tokenizer: b.tokenizer,
		Template: c.Template, ToolTemplate: c.ToolTemplate}
	if r.UsesDate() {
		if b.chat.Date = o.Date; o.Date == "" {
			return fault.BadOption("date", nil,
				"the chat template writes today's date, and what is built must not depend on the day; "+
					"give one, such as {date} %s", o.Now().Format(time.DateOnly))
		}
	}
	return nil
}

// maxTokensTold is the maximum number of tokens that unknownTokens names.
const maxTokensTold = 4

// unknownTokens warns of control tokens in the chat template that the tokenizer lacks, as one does that was not
// made for chats: the model would see their characters.
func (b *build) unknownTokens() (warning fault.Text) {
	if b.chat == nil {
		return warning
	}
	var unknown []string
	for _, name := range work.ControlToken().FindAllString(b.chat.Template+"\n"+b.chat.ToolTemplate, -1) {
		if _, known := b.tokenizer.ID(name); !known && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return warning
	}
	if len(unknown) > maxTokensTold {
		unknown = append(unknown[:maxTokensTold], "…")
	}
	return fault.Textf("the chat template has control tokens that are none of %s, which cuts them into pieces as any "+
		"text: %s; give the tokenizer of a model that was trained on chats, or another {chat-template}",
		b.tokenizer.Name(), strings.Join(unknown, ", "))
}

// whyUntrained returns what to do if no conversation has a token that is trained on. unfound is the number of
// turns to train on that the template did not write; roles are those that mean nothing where nobody is the
// assistant.
func whyUntrained(c *work.Conversations, unfound int64, roles []string) fault.Text {
	if len(roles) > 0 {
		return fault.Textf("no conversation has a turn of the assistant; the first has the roles %s: say what they mean, as "+
			"in {roles} %s=assistant", strings.Join(roles, ", "), shell.Quote(roles[len(roles)-1]))
	}
	if c.HasGeneration() {
		return fault.Textf("the {%% generation %%} blocks of the chat template, which mark what the assistant says, " +
			"were reached by no record; give another {chat-template}, or {train-on} all")
	}
	if unfound == 0 {
		return fault.Textf("no conversation has a turn of the role assistant with content, so that no token is trained " +
			"on; give the turns to learn that role, as with {map}, or pass {train-on} all")
	}
	return fault.Textf("the chat template writes no turn of the role assistant, so that no token is trained on; " +
		"give another {chat-template}, or {train-on} all")
}

// unmetRoles names the roles that the option Roles maps and no message has.
func (f *flusher) unmetRoles() (notes []fault.Text) {
	roles, _ := chat.ParseRoles(f.b.opts.Roles) // checked before the build
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		if f.b.partition == nil && !slices.Contains(f.state.MappedRoles, role) {
			notes = append(notes, fault.Textf("{roles} %s has no effect: no message has the role %s",
				shell.Quote(role+"="+roles[role]), role))
		}
	}
	return notes
}

// countChat counts a conversation by its shape, and what the template did not write of it.
func (f *flusher) countChat(d *job.Document) {
	s := &f.state
	if d.Shape != "" {
		s.CountShape(string(d.Shape))
	}
	if d.ToolsLeftOut {
		s.ToolsLeftOut++
	}
	s.ThoughtsLeftOut += int64(d.ThoughtsLeftOut)
	s.BesideCalls += int64(d.BesideCalls)
	for _, role := range d.MappedRoles {
		if !slices.Contains(s.MappedRoles, role) {
			s.MappedRoles = append(s.MappedRoles, role)
		}
	}
	if len(s.UnknownRoles) == 0 {
		s.UnknownRoles = d.UnknownRoles
	}
	s.ReasoningDropped += int64(d.ReasoningDropped)
	s.Turns += int64(d.Turns.End - d.Turns.Start)
	if d.RejectedLeftOut {
		s.RejectedLeftOut++
	}
	if d.Unfound == 0 {
		return
	}
	if s.Unfound.Conversations == 0 {
		uri := f.b.phases[s.Phase].set.URI(d.Input)
		if d.Member != "" {
			uri += ", member " + d.Member
		}
		s.Unfound.First = fmt.Sprintf("message %d of %s, row %d", d.FirstUnfound, uri, d.Row)
	}
	s.UnfoundTurns += int64(d.Unfound)
	s.Unfound.Conversations++
}
