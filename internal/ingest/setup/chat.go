package setup

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/work"
)

// openChat finds the chat template where the inputs hold conversations.
func (p *Prepared) openChat(ctx context.Context) error {
	o := p.Options
	inputs, all := 0, 0
	for _, phase := range p.Phases {
		formats := phase.Set.Formats()
		inputs, all = inputs+formats[source.Chat]+formats[source.JSONChat], all+phase.Set.Len()
	}
	if inputs == 0 && o.Format != source.Chat {
		return p.refuseChatOptions()
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
		p.Options.Noticef("the records are conversations, read as {format} chat; " +
			"{text-field} or {template} reads them otherwise")
	}
	if err := p.openRenderer(); err != nil && o.Format != source.Chat {
		return fault.Advise(err, "the records hold conversations, as lists of messages or ShareGPT's; "+
			"{text-field} or {template} reads them otherwise")
	} else if err != nil {
		return err
	}
	if o.EOS == "" { // packed or not, the template writes the end of a conversation
		o.EOS = option.NoToken
	}
	return p.openCutter(ctx)
}

// refuseChatOptions refuses options about conversations where there are none.
func (p *Prepared) refuseChatOptions() error {
	o := p.Options
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

func (p *Prepared) openRenderer() error {
	o := p.Options
	roles, err := chat.ParseRoles(o.Roles)
	if err != nil {
		return fault.BadOption("roles", strings.Join(o.Roles, ","), "%v", err)
	}
	asked := chat.Options{TrainOn: o.TrainOn, Reasoning: o.Reasoning, SplitTurns: o.SplitTurns, Roles: roles}
	if o.Inherits("chat-template") {
		asked.Template, asked.ToolTemplate = o.ChatTemplate, o.ToolTemplate
	}
	r, c, err := chat.OpenRenderer(p.Tokenizer, o.Tokenizer, o.ChatTemplate, o.Date, asked)
	if err != nil {
		return err
	}
	if wrong := r.Blind(); wrong != "" {
		return fault.BadOption("chat-template", nil, "%s; give one that does, such as {chat-template} chatml", wrong)
	}
	p.Chat = &work.Conversations{Renderer: r, Pieces: r.NewPieces(p.Tokenizer), Tokenizer: p.Tokenizer,
		Template: c.Template, ToolTemplate: c.ToolTemplate}
	if r.UsesDate() {
		if p.Chat.Date = o.Date; o.Date == "" {
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
func (p *Prepared) unknownTokens() (warning fault.Text) {
	if p.Chat == nil {
		return warning
	}
	var unknown []string
	for _, name := range work.ControlToken().FindAllString(p.Chat.Template+"\n"+p.Chat.ToolTemplate, -1) {
		if _, known := p.Tokenizer.ID(name); !known && !slices.Contains(unknown, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return warning
	}
	if len(unknown) > maxTokensTold {
		unknown = append(unknown[:maxTokensTold], "…")
	}
	return fault.Textf("the chat template uses control tokens that %s does not have and splits like text: %s; "+
		"give the tokenizer of a model that was trained on chats, another {chat-template}, or one with these tokens, "+
		"which 'dsload tokenizer add' makes",
		p.Tokenizer.Name(), strings.Join(unknown, ", "))
}
