package chat

import (
	"slices"
	"strings"
	"time"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// TrainOn says whose turns carry loss.
type TrainOn string

// The values of TrainOn.
const (
	TrainAssistant TrainOn = "assistant" // every turn of the assistant
	TrainLast      TrainOn = "last"      // the last of them
	TrainAll       TrainOn = "all"       // every token
)

// TrainOns lists all values of TrainOn.
var TrainOns = []TrainOn{TrainAssistant, TrainLast, TrainAll}

// Options configures a Renderer.
type Options struct {
	// Template is used for records without tools, ToolTemplate for those with tools. ToolTemplate
	// defaults to Template.
	Template, ToolTemplate string
	// Special holds the variables for special tokens, such as eos_token.
	Special *jinja.Dict
	// TrainOn says whose turns carry loss. Default TrainAssistant.
	TrainOn TrainOn
	// Reasoning says what becomes of a model's reasoning. Default KeepReasoning.
	Reasoning Reasoning
	// SplitTurns has each turn that is trained on rendered with the messages before it alone, see Text.Turn.
	SplitTurns bool
	// Roles maps roles of records, in lower case, to those that they mean, besides those that are known.
	Roles map[string]string
	// IsToken reports whether the tokenizer has a token; nil for none.
	IsToken func(token string) bool
	// Date is the date for strftime_now. If it is zero, that function is not defined.
	Date time.Time
}

// A Renderer turns records into texts. It is immutable.
type Renderer struct {
	opts         Options
	plain, tools *form
}

// form is a parsed template and what its source shows about the messages it takes.
type form struct {
	template *jinja.Template
	source   []byte
	// calledOlder reports whether it may know OpenAI's older function_call: its source names that.
	calledOlder bool
	thoughtEnds []string // in a content
	// traceable reports whether a trace of it may show anchors: that it does not hold any itself.
	traceable bool
}

const (
	// TextFactor is how many bytes of text a byte of a record may become: tojson with an indent
	// writes several.
	TextFactor = 3
	// overheadFactor is how often a text may repeat its template, and overheadBytes how many more
	// bytes it may have.
	overheadFactor = 4
	overheadBytes  = 16 << 10

	// The bounds of one execution. They depend only on the record.
	renderSteps        = 4 << 20
	renderStepsPerByte = 32
	renderBytes        = 2 << 20
	renderPerByte      = 10
	// comparedTexts is how many texts, or parts of them, are compared at a time.
	comparedTexts = 3
	// placeBytes is how many bytes of a record there are for each string with anchors, and
	// placeMemory the memory of its place, its anchors and where they are found.
	placeBytes  = 12
	placeMemory = 320
	// stackBytes is the memory of the deepest nesting of an execution.
	stackBytes = 2 << 20
)

// NewRenderer parses the templates. Errors match ErrTemplate.
func NewRenderer(o Options) (*Renderer, error) {
	if o.TrainOn == "" {
		o.TrainOn = TrainAssistant
	}
	if o.Special == nil {
		o.Special = &jinja.Dict{}
	}
	r := &Renderer{opts: o}
	var err error
	if r.plain, err = newForm(o.Template); err != nil {
		return nil, err
	}
	if r.tools = r.plain; o.ToolTemplate != "" && o.ToolTemplate != o.Template {
		r.tools, err = newForm(o.ToolTemplate)
	}
	return r, err
}

func newForm(source string) (*form, error) {
	t, err := jinja.Parse(source)
	if err != nil {
		return nil, fault.Of(ErrTemplate, "%v", err)
	}
	traceable := !t.HasGeneration()
	for _, lead := range anchorLeads {
		traceable = traceable && !strings.Contains(source, lead)
	}
	return &form{template: t, source: []byte(source), traceable: traceable,
		calledOlder: strings.Contains(source, "function_call"), thoughtEnds: thoughtEnds(source)}, nil
}

// UsesDate reports whether a template uses the date.
func (r *Renderer) UsesDate() bool {
	return r.plain.template.Uses("strftime_now") || r.tools.template.Uses("strftime_now")
}

// Blind says what is wrong with templates one of which does not read the messages, "" for others: its text is the same
// for every conversation.
func (r *Renderer) Blind() string {
	if r.plain.template.Uses("messages") && r.tools.template.Uses("messages") {
		return ""
	}
	return "the chat template does not read `messages`, so that nothing of a conversation would be in its text"
}

// HasGeneration reports whether the templates mark what the assistant says by {% generation %}.
func (r *Renderer) HasGeneration() bool {
	return r.plain.template.HasGeneration() || r.tools.template.HasGeneration()
}

// SplitTurns reports whether a conversation makes a row of each turn.
func (r *Renderer) SplitTurns() bool { return r.opts.SplitTurns }

// TrainOn returns whose turns carry loss.
func (r *Renderer) TrainOn() TrainOn { return r.opts.TrainOn }

// OverheadBytes returns how many bytes a text may have beyond TextFactor times its record's.
func (r *Renderer) OverheadBytes() int64 {
	return overheadFactor*int64(max(len(r.plain.source), len(r.tools.source))) + overheadBytes
}

// ResidentBytes returns the memory of the parsed templates.
func (r *Renderer) ResidentBytes() int64 {
	n := r.plain.template.ResidentBytes()
	if r.tools != r.plain {
		n += r.tools.template.ResidentBytes()
	}
	return n
}

// textBytes returns the length of the longest text of a record in bytes.
func (r *Renderer) textBytes(recordBytes int64) int64 {
	return TextFactor*recordBytes + r.OverheadBytes()
}

// ScratchBytes returns the most memory for a record of that size besides itself and its text: for
// decoded values, for what the template computes, and for the texts and anchors that are compared
// with it.
func (r *Renderer) ScratchBytes(recordBytes int64) int64 {
	texts := int64(comparedTexts)
	if r.opts.SplitTurns {
		texts++
	}
	return values.Bytes(recordBytes) + renderBytes + renderPerByte*recordBytes + texts*r.textBytes(recordBytes) +
		(16+recordBytes/placeBytes)*placeMemory + stackBytes
}

// A Worker renders records, one at a time, with its own buffers.
type Worker struct {
	r             *Renderer
	done          <-chan struct{}
	row           Text   // a turn's row
	before, after []byte // texts that are compared with the record's
	decoder       decoder
	scratch       jinja.Scratch
	trace, other  jinja.Trace
	items         []any // messages that are rendered
	learned       map[*form]*habits
	given         *jinja.Dict // what templates are given, but for the variables of a record
	spare         struct {    // room for anchors
		places []place
		used   []bool
		claims []claim
	}
}

// NewWorker returns a worker of this renderer. A template that is running when done is closed ends
// with ErrStopped.
func (r *Renderer) NewWorker(done <-chan struct{}) *Worker {
	return &Worker{r: r, done: done, decoder: decoder{Decoder: values.Decoder{Options: recordOptions}}}
}

// Span is a part of a text in bytes. What was said ends at Said; the rest ends the turn.
type Span struct{ Start, Said, End int }

// Text is what a Worker makes of a record. Reuse it: its buffers grow to the longest text.
type Text struct {
	Text  []byte
	Spans []Span // the parts that are trained on, in order; not for TrainAll
	Exact bool   // the spans come from generation blocks
	// Turn takes the text of each turn under Options.SplitTurns, which is valid until it returns; the conversation's
	// own text then has no spans.
	Turn     func(*Text) error
	Shape    Shape
	Replaced int // lone surrogates that became U+FFFD
	Noted
	Suspect
	// Unread are the fields of the record, and those of its messages, that have a value which nothing has read.
	Unread, UnreadOfMessages []string
	Losses
}

// Noted is what a record has that a build says something about.
type Noted struct {
	// MappedRoles are those of Options.Roles that the messages have.
	MappedRoles []string
	// UnknownRoles are the roles that mean nothing of a conversation in which the assistant says nothing.
	UnknownRoles []string
	// ReasoningDropped is how many messages had reasoning that was left out as Options.Reasoning says.
	ReasoningDropped int
	// RejectedLeftOut reports whether the record has a worse answer, which is left out.
	RejectedLeftOut bool
}

// Suspect is what one of the two sides of a record, or their context, looks like. A model's answer may be JSON, but
// hardly an object as Python prints it.
type Suspect struct{ Printed, Missing bool }

// look looks at a side's text.
func (s *Suspect) look(text string) {
	s.Missing = s.Missing || values.IsMissing(text)
	if strings.HasPrefix(text, "{'") || strings.HasPrefix(text, "['") {
		s.Printed = s.Printed || values.IsObject([]byte(text))
	}
}

// Losses is what is missing in a text, or in its spans.
type Losses struct {
	// ToolsLeftOut reports whether the record has tools, or calls of tools, of which the template writes nothing.
	ToolsLeftOut bool
	// ThoughtsLeftOut is how many messages have reasoning of which the template writes nothing, and BesideCalls
	// how many say something that it leaves out where it writes their calls of tools.
	ThoughtsLeftOut, BesideCalls int
	// Unfound is how many turns to train on were not found in the text. FirstUnfound is the number
	// of the message that is the first of them, from 1 on.
	Unfound, FirstUnfound int
}

// keptItems bounds the list of messages that a worker keeps, and keptPlaces the places of anchors.
const (
	keptItems  = 1 << 12
	keptPlaces = 1 << 6
)

// keptBytes bounds the buffers that a worker keeps between records.
const keptBytes = 256 << 10

// Render renders a record, a JSON object in valid UTF-8, into dst.
func (w *Worker) Render(dst *Text, data []byte) error {
	dst.reset()
	defer w.decoder.Clean()
	record, err := w.decoder.decode(data)
	if err != nil {
		return err
	}
	return w.render(dst, record, len(data))
}

// RenderRow renders a row of CSV of size bytes into dst. at returns the field of a column, which
// must be valid UTF-8; an empty field has no value.
func (w *Worker) RenderRow(dst *Text, columns []string, at func(column int) []byte, size int) error {
	dst.reset()
	defer w.decoder.Clean()
	record, err := w.decoder.decodeRow(columns, at, size)
	if err != nil {
		return err
	}
	return w.render(dst, record, size)
}

func (t *Text) reset() {
	*t = Text{Text: t.Text[:0], Spans: t.Spans[:0], Turn: t.Turn, Unread: t.Unread[:0], UnreadOfMessages: t.UnreadOfMessages[:0]}
}

// render renders a record that was size bytes long. Contents of which the template leaves out something are
// given in the other form that it may take, as strings or as lists of parts.
func (w *Worker) render(dst *Text, record *jinja.Dict, size int) error {
	c, err := w.converse(record)
	if err != nil {
		return err
	}
	defer func() { dst.noteUnread(c) }()
	dst.Shape, dst.RejectedLeftOut, dst.Suspect = c.shape, c.rejected, c.suspect
	job := &rendering{Worker: w, conversation: c, form: w.r.plain, size: int64(size)}
	if c.tools != nil || c.holdTools() {
		job.form = w.r.tools
	}
	if list := w.decoder.tools.list; list != nil && c.tools == list {
		w.scratch.Share(list)
	}
	if err := job.finish(); err != nil {
		return err
	}
	dst.Replaced = w.decoder.Lone
	dst.MappedRoles = job.mapped
	dst.ReasoningDropped = c.dropped
	if !slices.ContainsFunc(c.messages, isAssistant) {
		dst.UnknownRoles = c.unknownRoles()
	}
	lists, err := c.unifyParts()
	if err == nil && lists {
		err = job.fit(job.habits().contents)
	}
	if err != nil {
		return err
	}
	if job, err = job.inForm(dst, lists); err == nil && dst.Turn != nil {
		err = job.split(dst)
	}
	c.messages = job.messages
	return err
}

func isAssistant(m *jinja.Dict) bool { return get(m, "role") == "assistant" }

func notEmpty(v any) bool {
	list, ok := v.(*jinja.List)
	return ok && len(list.Items) > 0
}
