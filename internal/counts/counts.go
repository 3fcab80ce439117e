// Package counts is what a build counts, as one value: the stages count into it, a checkpoint keeps it,
// partitions and additions are added up, the manifest writes it, and reports read it from there.
//
// To add a counter, add a field here, count where it happens, and report it in internal/ingest/report/losses.go;
// then go generate ./loader, and go test ./cmd/dsload -run TestSchemas -update.
package counts

import (
	"encoding/json"
	"maps"
	"strings"
)

// Counts is what a build counts besides the rows that it writes. The names in JSON are those of the
// manifest's counters. A counter with omitempty is not written while it is 0 or nil.
type Counts struct {
	Numbers
	Unread
	// Shapes counts conversations by the shape of their records; shape_… in the manifest.
	Shapes map[string]int64 `json:"shapes,omitempty"`
	// Unused counts the records with a field that nothing used, by its name, and the messages with one, by its name
	// after "messages[]."; unused_… in the manifest.
	Unused map[string]int64 `json:"unused,omitempty"`
	// Fields counts the records whose text was taken from one of several fields, by its name; field_… in the
	// manifest.
	Fields map[string]int64 `json:"fields,omitempty"`
	// CutBy lists the options whose budgets left something of the sources out; cut_by_… in the manifest.
	CutBy []string `json:"cut_by,omitempty"`
	// DroppedBy counts the documents that filters and dedup left out, by the names of their options. The
	// manifest has them apart.
	DroppedBy map[string]int64 `json:"dropped_by,omitempty"`
}

// Numbers are the counts that are single numbers. Package loader has the same fields and comments.
type Numbers struct {
	// Documents is how many documents were read.
	Documents int64 `json:"documents"`
	// TextBytes is the tokenized text in bytes of UTF-8.
	TextBytes int64 `json:"text_bytes"`
	// Replaced counts ill-formed UTF-8 sequences that became U+FFFD.
	Replaced int64 `json:"replaced"`
	// Dropped counts documents longer than a row, left out under the overflow "drop".
	Dropped int64 `json:"dropped"`
	// Copies counts documents left out as copies of held-out ones.
	Copies int64 `json:"copies"`
	// ForcedCuts counts cuts of a document where the tokenizer knew no safe one.
	ForcedCuts int64 `json:"forced_cuts"`
	// Rejected counts bad records that were skipped.
	Rejected int64 `json:"rejected"`

	// CopiedExamples is how many examples Copies would have made.
	CopiedExamples int64 `json:"copied_examples,omitempty"`
	// ValRest counts examples of held-out documents that val had no room for.
	ValRest int64 `json:"val_rest,omitempty"`
	// WithoutTarget counts examples left out because no token of a target was in them.
	WithoutTarget int64 `json:"without_target,omitempty"`
	// Truncated counts documents, and pairs, that were cut to the longest row.
	Truncated int64 `json:"truncated,omitempty"`
	// Chunked counts conversations, and pairs, that became several rows.
	Chunked int64 `json:"chunked,omitempty"`
	// LaterRows counts the rows of Chunked that begin in the middle of one.
	LaterRows int64 `json:"later_rows,omitempty"`
	// Empty counts documents without text, and pairs without prompt or target.
	Empty int64 `json:"empty,omitempty"`
	// Untrained counts conversations left out because no token of them is trained on.
	Untrained int64 `json:"untrained,omitempty"`
	// UntrainedRows counts rows of other conversations without a trained token, which are kept.
	UntrainedRows int64 `json:"untrained_rows,omitempty"`
	// UnfoundTurns counts the assistant's turns that were not found in what the chat template writes.
	UnfoundTurns int64 `json:"unfound_turns,omitempty"`
	// MoreUnused counts what Unused has no room for.
	MoreUnused int64 `json:"more_unused,omitempty"`
	// ToolsLeftOut counts conversations with tools of which the chat template writes nothing.
	ToolsLeftOut int64 `json:"tools_left_out,omitempty"`
	// ColumnNulls counts nulls left out of conversations because only a schema put them there.
	ColumnNulls int64 `json:"column_nulls,omitempty"`
	// ThoughtsLeftOut counts messages whose reasoning the chat template leaves out.
	ThoughtsLeftOut int64 `json:"thoughts_left_out,omitempty"`
	// BesideCalls counts messages whose words beside calls of tools the chat template leaves out.
	BesideCalls int64 `json:"beside_calls,omitempty"`
	// Turns counts the assistant's turns that have a row of their own.
	Turns int64 `json:"turns,omitempty"`
	// ReasoningDropped counts messages whose reasoning was left out, as an option says.
	ReasoningDropped int64 `json:"reasoning_dropped,omitempty"`
	// RejectedLeftOut counts conversations with a worse answer, which was left out.
	RejectedLeftOut int64 `json:"rejected_left_out,omitempty"`
	// Rendered counts texts that begin with a control token.
	Rendered int64 `json:"rendered,omitempty"`
	// Foreign counts those of Rendered whose token the tokenizer lacks.
	Foreign int64 `json:"foreign,omitempty"`
	// Separators counts texts that are a control token alone.
	Separators int64 `json:"separators,omitempty"`
	// Missing counts texts that are nothing but a word for a missing value.
	Missing int64 `json:"missing,omitempty"`
	// Objects counts texts that look like objects of JSON, or in which a template printed one.
	Objects int64 `json:"objects,omitempty"`
	// Markup counts texts that begin as pages of HTML.
	Markup int64 `json:"markup,omitempty"`
	// WhereAsText counts documents with a text that a condition compared with a number.
	WhereAsText int64 `json:"where_as_text,omitempty"`
	// Mapped counts records that went through the command of the option map.
	Mapped int64 `json:"mapped,omitempty"`
	// DamagedInputs counts inputs of which something was lost.
	DamagedInputs int64 `json:"damaged_inputs,omitempty"`
	// DamagedCutOff counts those of DamagedInputs whose rest was lost, of unknown length.
	DamagedCutOff int64 `json:"damaged_inputs_cut_off,omitempty"`
	// DroppedTokens counts the tokens of text that packing left out; nil where rows are not packed.
	DroppedTokens *int64 `json:"dropped_tokens,omitempty"`
}

// Unread is what the budget that ended a build left of its sources. It is nil if no budget ended the build, or if
// the rest depends on more than the sources and the settings.
type Unread struct {
	// UnreadInputs counts the inputs that a budget left untouched; nil if no budget ended the build.
	UnreadInputs *int64 `json:"unread_inputs,omitempty"`
	// UnreadBytes is what a budget left unread, in bytes as stored; nil if that is not known.
	UnreadBytes *int64 `json:"unread_bytes,omitempty"`
}

// Budgets are the options of CutBy, in the order of reports.
var Budgets = []string{"max-examples", "max-val-examples", "max-bytes", "max-tokens"}

const (
	shapePrefix  = "shape_"
	unusedPrefix = "unused_"
	fieldPrefix  = "field_"
	// OfMessages precedes the names of the fields of messages.
	OfMessages = "messages[]."
	// maxUnused is how many names Unused has room for.
	maxUnused = 1 << 8
)

var underscored = strings.NewReplacer("-", "_")

func cutName(option string) string { return "cut_by_" + underscored.Replace(option) }

// Map returns the counters of a manifest.
func (c Counts) Map() map[string]int64 {
	m := map[string]int64{}
	convert(c.Numbers, &m)
	convert(c.Unread, &m)
	for shape, n := range c.Shapes {
		m[shapePrefix+underscored.Replace(strings.ToLower(shape))] += n
	}
	for name, n := range c.Unused {
		m[unusedPrefix+name] = n
	}
	for name, n := range c.Fields {
		m[fieldPrefix+name] = n
	}
	for _, option := range c.CutBy {
		m[cutName(option)] = 1
	}
	return m
}

// Of returns what a manifest's counters and dropped documents say. Shapes have the names of the counters.
func Of(counters, dropped map[string]int64) (c Counts) {
	convert(counters, &c.Numbers)
	convert(counters, &c.Unread)
	for name, n := range counters {
		if shape, ok := strings.CutPrefix(name, shapePrefix); ok {
			add(&c.Shapes, shape, n)
		}
		if field, ok := strings.CutPrefix(name, unusedPrefix); ok {
			add(&c.Unused, field, n)
		}
		if field, ok := strings.CutPrefix(name, fieldPrefix); ok {
			add(&c.Fields, field, n)
		}
	}
	for _, option := range Budgets {
		if counters[cutName(option)] > 0 {
			c.CutBy = append(c.CutBy, option)
		}
	}
	c.DroppedBy = dropped
	return c
}

// convert turns the numbers into a map of the same names, or a map into the numbers.
func convert(from, to any) {
	data, err := json.Marshal(from)
	if err == nil {
		err = json.Unmarshal(data, to)
	}
	if err != nil {
		panic(err) // names and whole numbers are always JSON
	}
}

// Add adds what another part of the same dataset counted.
func (c *Counts) Add(other Counts) {
	*c = Of(sum(c.Map(), other.Map()), sum(c.DroppedBy, other.DroppedBy))
}

func sum(a, b map[string]int64) map[string]int64 {
	a = maps.Clone(a)
	for name, n := range b {
		add(&a, name, n)
	}
	return a
}

func add(m *map[string]int64, name string, n int64) {
	if *m == nil {
		*m = map[string]int64{}
	}
	(*m)[name] += n
}

// Clone returns a copy that shares nothing that changes.
func (c Counts) Clone() Counts {
	c.Shapes, c.DroppedBy, c.Unused = maps.Clone(c.Shapes), maps.Clone(c.DroppedBy), maps.Clone(c.Unused)
	c.Fields = maps.Clone(c.Fields)
	if c.DroppedTokens != nil {
		c.DroppedTokens = new(*c.DroppedTokens)
	}
	return c
}

// Drop counts n documents that an option left out.
func (c *Counts) Drop(option string, n int64) { add(&c.DroppedBy, option, n) }

// CountShape counts n conversations by their shape.
func (c *Counts) CountShape(shape string, n int64) { add(&c.Shapes, shape, n) }

// CountField counts n records by the field that their text was taken from.
func (c *Counts) CountField(name string, n int64) { add(&c.Fields, name, n) }

// CountUnused counts n records, or messages, with a field that nothing used.
func (c *Counts) CountUnused(field string, n int64) {
	if _, known := c.Unused[field]; !known && len(c.Unused) == maxUnused {
		c.MoreUnused += n
		return
	}
	add(&c.Unused, field, n)
}

// LacksText reports whether TextBytes counts text that is in no row.
func (c Counts) LacksText() bool {
	return len(c.CutBy) > 0 || c.DroppedTokens != nil && *c.DroppedTokens > 0 ||
		c.Dropped+c.Copies+c.CopiedExamples+c.ValRest+c.WithoutTarget > 0
}
