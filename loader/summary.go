// Code generated from packages option, report and counts by go generate; DO NOT EDIT.

package loader

import "time"

// Summary is what a build made.
type Summary struct {
	// Out is the dataset folder.
	Out string
	// Splits are the dataset's splits, "train" first.
	Splits []SplitSummary
	// Counts is what a build counts besides the rows that it writes.
	Counts
	// Packing is how rows were packed; nil if they were not.
	Packing *PackSummary
	// Formats counts the inputs by their format.
	Formats map[string]int
	// DocumentEnd is the token that ends each document, with its id; "" if none does or a chat template writes it.
	DocumentEnd string
	// Stopped names the budget that ended the build, or says that the sources ended.
	Stopped string
	// Notes are sentences about what was cut, left out or found.
	Notes []string
	// Warnings are sentences about what is probably wrong with the sources.
	Warnings []string
	// Added counts the examples that Append added; Splits are those of the whole dataset.
	Added int64
	// AlreadyBuilt reports that the folder held the same dataset, so that nothing was done.
	AlreadyBuilt bool
	// Resumed reports that an earlier run of the same build was continued.
	Resumed bool
	// ResumedAt counts the examples that earlier runs had written.
	ResumedAt int64
	// Partition names the part of a plan that was built, such as "3/16".
	Partition string
	// Seconds is how long this run took.
	Seconds float64
	// MBPerSecond is the speed of this run, in millions of bytes of text a second.
	MBPerSecond float64
	// TokensPerSecond is the speed of this run.
	TokensPerSecond float64
	// PeakRSSBytes is the most memory that the process held; 0 if the system has no figure.
	PeakRSSBytes int64
	// CapBytes is the memory cap.
	CapBytes int64
}

// SplitSummary is one split of a Summary.
type SplitSummary struct {
	// Name is "train" or "val".
	Name string
	// Examples counts rows.
	Examples int64
	// Tokens counts tokens, labels included.
	Tokens int64
	// Shards counts files.
	Shards int
	// Fill is the share of packed rows that tokens take; 0 if rows are not packed.
	Fill float64
	// LossTokens counts the tokens that carry loss; nil if that is unknown.
	LossTokens *int64
	// LossShare is their share of Tokens; nil if that is unknown.
	LossShare *float64
}

// PackSummary is what packing made of the documents.
type PackSummary struct {
	// Policy is how rows were filled.
	Policy Pack
	// Length is the number of tokens of a full row.
	Length int
	// DroppedTokens counts tokens of text that were left out, special tokens apart.
	DroppedTokens int64
	// Truncated counts documents that were cut to Length.
	Truncated int64
}

// Progress is how far a build is.
type Progress struct {
	// Totals are what a build has counted and written, over all its runs.
	Totals
	// SourceBytes is what was read of the sources, in bytes as stored.
	SourceBytes int64
	// TotalBytes is the size of all sources in bytes; 0 if unknown.
	TotalBytes int64
	// Fraction is how far the build is to the nearest budget or the end of the sources, from 0 to 1; negative if unknown.
	Fraction float64
	// Elapsed is how long this run has taken.
	Elapsed time.Duration
	// Resumed is what earlier runs of the same build had done.
	Resumed Totals
	// Memory is what the process holds now, in bytes; 0 if the system has no figure.
	Memory int64
	// CapBytes is the memory cap.
	CapBytes int64
	// Done marks the last report of a run.
	Done bool
}

// Totals are what a build has counted and written, over all its runs.
type Totals struct {
	// Counts is what a build counts besides the rows that it writes.
	Counts
	// Examples counts the rows written, of all splits.
	Examples int64
	// Tokens counts the tokens written, labels included.
	Tokens int64
	// Train counts the rows of the split "train".
	Train int64
	// Val counts the rows of the split "val".
	Val int64
}

// Counts is what a build counts besides the rows that it writes.
type Counts struct {
	// Numbers are the counts that are single numbers.
	Numbers
	// Unread is what the budget that ended a build left of its sources.
	Unread
	// Shapes counts conversations by the shape of their records; shape_… in the manifest.
	Shapes map[string]int64
	// Unused counts the records with a field that nothing used, by its name, and the messages with one, by its name after
	// "messages[]."; unused_… in the manifest.
	Unused map[string]int64
	// Fields counts the records whose text was taken from one of several fields, by its name; field_… in the manifest.
	Fields map[string]int64
	// CutBy lists the options whose budgets left something of the sources out; cut_by_… in the manifest.
	CutBy []string
	// DroppedBy counts the documents that filters and dedup left out, by the names of their options. The manifest has
	// them apart.
	DroppedBy map[string]int64
}

// Numbers are the counts that are single numbers.
type Numbers struct {
	// Documents is how many documents were read.
	Documents int64
	// TextBytes is the tokenized text in bytes of UTF-8.
	TextBytes int64
	// Replaced counts ill-formed UTF-8 sequences that became U+FFFD.
	Replaced int64
	// Dropped counts documents longer than a row, left out under the overflow "drop".
	Dropped int64
	// Copies counts documents left out as copies of held-out ones.
	Copies int64
	// ForcedCuts counts cuts of a document where the tokenizer knew no safe one.
	ForcedCuts int64
	// Rejected counts bad records that were skipped.
	Rejected int64
	// CopiedExamples is how many examples Copies would have made.
	CopiedExamples int64
	// ValRest counts examples of held-out documents that val had no room for.
	ValRest int64
	// WithoutTarget counts examples left out because no token of a target was in them.
	WithoutTarget int64
	// Truncated counts documents, and pairs, that were cut to the longest row.
	Truncated int64
	// Chunked counts conversations, and pairs, that became several rows.
	Chunked int64
	// LaterRows counts the rows of Chunked that begin in the middle of one.
	LaterRows int64
	// Empty counts documents without text, and pairs without prompt or target.
	Empty int64
	// Untrained counts conversations left out because no token of them is trained on.
	Untrained int64
	// UntrainedRows counts rows of other conversations without a trained token, which are kept.
	UntrainedRows int64
	// UnfoundTurns counts the assistant's turns that were not found in what the chat template writes.
	UnfoundTurns int64
	// MoreUnused counts what Unused has no room for.
	MoreUnused int64
	// ToolsLeftOut counts conversations with tools of which the chat template writes nothing.
	ToolsLeftOut int64
	// ColumnNulls counts nulls left out of conversations because only a schema put them there.
	ColumnNulls int64
	// ThoughtsLeftOut counts messages whose reasoning the chat template leaves out.
	ThoughtsLeftOut int64
	// BesideCalls counts messages whose words beside calls of tools the chat template leaves out.
	BesideCalls int64
	// Turns counts the assistant's turns that have a row of their own.
	Turns int64
	// ReasoningDropped counts messages whose reasoning was left out, as an option says.
	ReasoningDropped int64
	// RejectedLeftOut counts conversations with a worse answer, which was left out.
	RejectedLeftOut int64
	// Rendered counts texts that begin with a control token.
	Rendered int64
	// Foreign counts those of Rendered whose token the tokenizer lacks.
	Foreign int64
	// Separators counts texts that are a control token alone.
	Separators int64
	// Missing counts texts that are nothing but a word for a missing value.
	Missing int64
	// Objects counts texts that look like objects of JSON, or in which a template printed one.
	Objects int64
	// Markup counts texts that begin as pages of HTML.
	Markup int64
	// WhereAsText counts documents with a text that a condition compared with a number.
	WhereAsText int64
	// Mapped counts records that went through the command of the option map.
	Mapped int64
	// DamagedInputs counts inputs of which something was lost.
	DamagedInputs int64
	// DamagedCutOff counts those of DamagedInputs whose rest was lost, of unknown length.
	DamagedCutOff int64
	// DroppedTokens counts the tokens of text that packing left out; nil where rows are not packed.
	DroppedTokens *int64
}

// Unread is what the budget that ended a build left of its sources.
type Unread struct {
	// UnreadInputs counts the inputs that a budget left untouched; nil if no budget ended the build.
	UnreadInputs *int64
	// UnreadBytes is what a budget left unread, in bytes as stored; nil if that is not known.
	UnreadBytes *int64
}
