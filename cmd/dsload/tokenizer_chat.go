package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/marked"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/dsload/dsload/tokenize"
	"github.com/spf13/cobra"
)

// chatFlags are the flags of tokenizer chat.
type chatFlags struct {
	tokenizer      tokenizerFlags
	template, date string
	trainOn        string
	reasoning      string
	roles          []string
	explain        bool
}

func newTokenizerChatCommand() *cobra.Command {
	var f chatFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "chat",
		Short: "Render conversations on stdin with a chat template, with ids and loss mask",
		Long: `Each line of stdin is a JSON object with a conversation, such as {"messages": […]}; it becomes
{"text": …, "ids": […], "mask": […]}: as 'dsload build --format chat' does. The mask is
1 for tokens that are trained on. A turn of the assistant that is not found in the text is
reported on stderr. With --explain it shows the text, and what carries loss in colour, or
between ⟦ and ⟧ where there are no colours.`,
		Example: `  dsload tokenizer chat --tokenizer path/to/model < chats.jsonl
  dsload tokenizer chat --explain --tokenizer path/to/model < chats.jsonl
  echo '{"messages": [{"role": "user", "content": "Hi"}]}' | dsload tokenizer chat -t path/to/model
  dsload tokenizer chat --tokenizer path/to/model --chat-template template.jinja < chats.jsonl`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.explain && asJSON && cmd.Flags().Changed("json") {
				return usagef("tokenizer chat: --explain is for people and --json for programs; give one of them")
			}
			return runChat(cmd, &f)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	f.tokenizer.add(cmd)
	flags.StringVar(&f.template, "chat-template", "", optionUsage("chat-template"))
	flags.StringVar(&f.trainOn, "train-on", string(chat.TrainAssistant), optionUsage("train-on"))
	flags.StringVar(&f.reasoning, "reasoning", string(chat.KeepReasoning), optionUsage("reasoning"))
	flags.StringSliceVar(&f.roles, "roles", nil, optionUsage("roles"))
	flags.StringVar(&f.date, "date", "", "day that a template writes as today's, such as 2006-01-02 (default today)")
	likeOption(flags, "chat-template", "train-on", "reasoning", "roles", "date")
	flags.BoolVar(&asJSON, "json", true, "JSON lines out, unless --explain is given")
	flags.BoolVar(&f.explain, "explain", false, "show the text, with what carries loss")
	help.InGroup(flags, help.GroupOutput, "explain")
	return cmd
}

func runChat(cmd *cobra.Command, f *chatFlags) error {
	if on := chat.TrainOn(f.trainOn); !slices.Contains(chat.TrainOns, on) {
		return usagef("--train-on %s: %s", f.trainOn, spelling.OneOf(f.trainOn, chat.TrainOns))
	}
	if r := chat.Reasoning(f.reasoning); !slices.Contains(chat.Reasonings, r) {
		return usagef("--reasoning %s: %s", f.reasoning, spelling.OneOf(f.reasoning, chat.Reasonings))
	}
	if f.reasoning == string(chat.MaskReasoning) && f.trainOn == string(chat.TrainAll) {
		return usagef("--reasoning mask: --train-on all puts loss on every token; leave one of the two out")
	}
	t, err := openTokenizer(&f.tokenizer, cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	roles, err := chat.ParseRoles(f.roles)
	if err != nil {
		return usagef("--roles: %v", err)
	}
	r, _, err := chat.OpenRenderer(t, f.tokenizer.name, f.template,
		cmp.Or(f.date, time.Now().Format(time.DateOnly)),
		chat.Options{TrainOn: chat.TrainOn(f.trainOn), Reasoning: chat.Reasoning(f.reasoning), Roles: roles})
	if err != nil {
		return err
	}
	if wrong := r.Blind(); wrong != "" {
		warn(cmd.ErrOrStderr(), wrong+"; 'dsload build' refuses it")
	}
	c := &chatter{worker: r.NewWorker(cmd.Context().Done()), encoder: r.NewEncoder(r.NewPieces(t),
		t.NewEncoder(tokenize.EncoderOptions{}))}
	if f.explain {
		stdout := cmd.OutOrStdout()
		c.explain, c.screen = t, marked.Screen{Colour: colourful(stdout)}
		cmd.SetOut(unguarded(stdout)) // colours are ours, and what they surround is harmless
	}
	return eachLine(cmd, func(n int, line []byte, out *bufio.Writer) error {
		err := c.write(out, line)
		if errors.Is(err, chat.ErrStopped) {
			return cmd.Context().Err()
		}
		if err != nil {
			return fault.Kindf(fault.Corrupt, "chat: stdin line %d: %w", n, err)
		}
		for _, note := range c.leftOut() {
			warn(cmd.ErrOrStderr(), fmt.Sprintf("stdin line %d: %s", n, note))
		}
		return nil
	})
}

// leftOut says what is missing in the text, or not trained on.
func (c *chatter) leftOut() (notes []string) {
	t := &c.text
	if t.ToolsLeftOut {
		notes = append(notes, "the chat template writes nothing of the tools, or their calls and what the role tool says")
	}
	if t.RejectedLeftOut {
		notes = append(notes, "the worse answer (rejected) is left out")
	}
	if len(t.UnknownRoles) > 0 {
		notes = append(notes, fmt.Sprintf("nothing is said by the assistant; --roles says what other roles mean: %s",
			strings.Join(t.UnknownRoles, ", ")))
	}
	if t.ThoughtsLeftOut > 0 {
		notes = append(notes, fmt.Sprintf("turns of the assistant whose reasoning the chat template leaves out: %d",
			t.ThoughtsLeftOut))
	}
	if t.BesideCalls > 0 {
		notes = append(notes, fmt.Sprintf("messages of which the chat template writes the calls of tools, and not what is "+
			"said beside them: %d", t.BesideCalls))
	}
	if t.Unfound > 0 {
		notes = append(notes, fmt.Sprintf("turns of the assistant that are not trained on, because they were not found "+
			"in the text that the chat template writes: %d; the first is message %d", t.Unfound, t.FirstUnfound))
	}
	return notes
}

// chatter renders and tokenizes conversations.
type chatter struct {
	worker  *chat.Worker
	encoder *chat.Encoder
	text    chat.Text
	explain *tokenize.Tokenizer // nil for JSON
	screen  marked.Screen
	ids     []uint32
	mask    []bool
	json    bytes.Buffer
}

// write writes one conversation without the end of its last line.
func (c *chatter) write(out *bufio.Writer, line []byte) (err error) {
	if err = c.worker.Render(&c.text, line); err != nil {
		return err
	}
	if c.ids, c.mask, err = c.encoder.Append(c.ids[:0], c.mask[:0], &c.text); err != nil {
		return err
	}
	if c.explain != nil {
		trained := 0
		for _, on := range c.mask {
			if on {
				trained++
			}
		}
		_, err = fmt.Fprintf(out, "%s, loss on %s (%s)\n%s\n", plural(len(c.ids), "token"), formatCount(int64(trained)),
			c.screen.Legend(), strings.Join(c.screen.Lines(marked.Cut(c.explain, c.ids, c.mask, nil, false)), "\n"))
		return err
	}
	c.json.Reset()
	c.json.WriteString(`{"text":`)
	e := json.NewEncoder(&c.json)
	e.SetEscapeHTML(false)
	if err := e.Encode(string(c.text.Text)); err != nil {
		return err
	}
	c.json.Truncate(c.json.Len() - 1) // the line end
	b := append(c.json.AvailableBuffer(), `,"ids":[`...)
	b = appendIDs(b, c.ids, ',')
	b = append(b, `],"mask":[`...)
	for i, trained := range c.mask {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, map[bool]byte{true: '1', false: '0'}[trained])
	}
	c.json.Write(append(b, "]}"...))
	_, err = out.Write(c.json.Bytes())
	return err
}
