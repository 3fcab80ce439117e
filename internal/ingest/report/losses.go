package report

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// Losses returns sentences about what a build cut off or left out of the documents that it read,
// besides bad records and what a budget cut.
func Losses(m *shard.Manifest) []fault.Text {
	kind := Texts
	var s struct {
		ChatTemplate string `json:"chat-template"`
	}
	if m.Schema.Labels || m.Schema.LossMask {
		kind = Pairs
	}
	if json.Unmarshal(m.Settings, &s) == nil && s.ChatTemplate != "" { // else another program's settings
		kind = Conversations
	}
	return LossesOf(counts.Of(m.Counters, m.Dropped), kind)
}

// Kind is what the documents of a build are.
type Kind int

const (
	Texts Kind = iota
	Pairs
	Conversations
)

// LossesOf makes sentences of the counters.
func LossesOf(c counts.Counts, kind Kind) []fault.Text {
	return slices.Concat(counted(c.Mapped, "records that went through {map}: %s"), damageLosses(c), Dropped(c),
		ComparedAsText(c), Rendered(c), CutOff(c, kind),
		UnusedFields(c))
}

// counted returns a sentence with a number, nothing for 0.
func counted(n int64, format string) []fault.Text {
	if n == 0 {
		return nil
	}
	return []fault.Text{fault.Textf(format, units.Count(n))}
}

// ComparedAsText warns of numbers that were compared with texts.
func ComparedAsText(c counts.Counts) []fault.Text {
	return counted(c.WhereAsText, "documents in which {where} compared a number with a text: %s; texts are compared by "+
		"their characters, where 10 comes before 9")
}

// suspect warns of texts that are no prose.
func suspect(c counts.Counts) []fault.Text {
	if len(c.Shapes) > 0 {
		notes := counted(c.Missing, "conversations in which a field is nothing but nan, None, NULL or another word for a missing "+
			"value: %s; pandas and datasets read no value where a CSV file has these; {where} 'FIELD!=nan' leaves such records "+
			"out, and {map} can leave out the field")
		return append(notes, counted(c.Objects, "conversations in which a field is an object or a list as Python prints it: %s, "+
			"with braces and quotes as text; if a part of it is meant, take it out by {map}")...)
	}
	notes := counted(c.Missing, "texts that are nothing but nan, None, NULL or another word for a missing "+
		"value: %s; pandas and datasets read no value where a CSV file has these; "+
		"{no-match} '^(-?[nN]a[nN]|None|null|NULL|#?N/?A|n/a|<NA>)$' leaves them out")
	return append(notes, counted(c.Objects, "texts that look like whole records, of JSON or as Python prints them, or in which a "+
		"template printed an object or a list: %s, with braces and quotes as text; if one field is meant, give {format} jsonl "+
		"where each line is JSON, or the field by {map}, or in a template as in {{ answers.text[0] }}; "+
		"{{ tags | join(', ') }} writes a list")...)
}

// Rendered warns of texts that a chat template wrote, of what separates texts, and of pages of HTML.
func Rendered(c counts.Counts) []fault.Text {
	notes := counted(c.Separators, "texts that are a control token alone, such as <|endoftext|>: %s; if documents of several "+
		"lines lie between them, {format} document keeps those whole: a file is then one, with these tokens inside")
	notes = append(notes, counted(c.Markup, "documents that are pages of HTML: %s, with their tags, scripts and styles as "+
		"text; {map} with a program that takes the words out of them leaves these out")...)
	notes = append(notes, suspect(c)...)
	if c.Rendered == c.Separators && c.Foreign == 0 {
		return notes
	}
	note := fault.Textf("texts that begin with a control token, such as <s> or <|im_start|>, as if a chat template wrote "+
		"them: %s; a token that would stand at an end of them twice is written once; {format} chat writes conversations "+
		"that come as messages, with a loss mask", units.Count(c.Rendered))
	if c.Foreign > 0 {
		note = fault.Textf("%v; the token at the beginning of %s is none of the tokenizer's, which cuts it into pieces as "+
			"any text: give the {tokenizer} that they were written for", note, units.Count(c.Foreign))
	}
	return append(notes, note)
}

// LeftOut returns how many documents a build left out so far, by the reason.
func LeftOut(c counts.Counts) map[string]int64 {
	out := map[string]int64{"copies of held-out documents": c.Copies, "longer than the longest row": c.Dropped,
		"empty": c.Empty}
	maps.Copy(out, c.DroppedBy)
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}

// CutOff makes sentences of what was cut, or left out because nothing of it can be trained on.
func CutOff(c counts.Counts, kind Kind) (sentences []fault.Text) {
	add := func(n int64, format string) {
		sentences = append(sentences, counted(n, format)...)
	}
	if c.DroppedTokens != nil && c.Truncated > 0 {
		sentences = append(sentences, fault.Textf("documents cut to {max-length} by {pack} bfd: "+
			"%s, %s of text dropped; {pack} bfd_split keeps them",
			units.Count(c.Truncated), units.Plural(*c.DroppedTokens, "token")))
		c.Truncated = 0 // reported above
	}
	if c.Chunked > 0 {
		sentences = append(sentences, chunked(c, kind))
	}
	if kind == Conversations {
		what := whole(c)
		add(c.Turns, "turns of the assistant that have a row each by {split-turns}, with what comes before them: %s")
		add(c.Untrained, what+" left out because no token of them is trained on: %s")
		add(c.ReasoningDropped, "messages of which the reasoning was left out by {reasoning} drop: %s")
		add(c.UnfoundTurns, "turns of the assistant that are not trained on, since they were not found in the text "+
			"that the chat template writes: %s")
		add(c.ToolsLeftOut, "conversations with tools, or calls of tools, of which the chat template writes nothing: %s; "+
			"give a {chat-template} that does")
		add(c.ThoughtsLeftOut, "turns of the assistant whose reasoning the chat template leaves out, as many do before the "+
			"last question: %s")
		add(c.BesideCalls, "messages of which the chat template writes the calls of tools, and not what is said beside "+
			"them: %s")
		add(c.RejectedLeftOut, "conversations whose worse answer (rejected) was left out, since one answer is trained on: %s")
		add(c.ColumnNulls, "nulls left out of tools, calls and messages, where the columns' schema gives a row the fields of "+
			"all others: %s")
		if c.DroppedTokens != nil {
			add(c.WithoutTarget, "packed rows left out because no token of them is trained on: %s; raise {max-length}")
		} else {
			add(c.WithoutTarget,
				what+" left out because no token within {max-length} is trained on: %s; raise {max-length}")
			add(c.UntrainedRows,
				"rows without a token that is trained on: %s; they are kept as parts of their conversations")
		}
		add(c.Truncated, what+" cut to {max-length}: %s; the rest of each was left out")
		add(c.Empty, "conversations left out because they hold no text: %s")
		return sentences
	}
	add(c.WithoutTarget, "examples left out because no token of the target was in them: %s; "+
		"raise {max-length} to keep prompt and target together")
	if kind == Pairs {
		add(c.Truncated,
			"pairs cut to {max-length}, prompt or target: %s; raise it, or leave them out with {overflow} drop")
		add(c.Empty, "pairs left out because the prompt or the target is empty: %s")
		return sentences
	}
	add(c.Truncated, "documents cut to {max-length}: %s; the rest of each was left out")
	add(c.Empty, "documents left out because they hold no text: %s")
	return sentences
}

// whole returns what of a conversation is one document.
func whole(c counts.Counts) string {
	if c.Turns > 0 {
		return "turns, with what comes before them,"
	}
	return "conversations"
}

// chunked returns the sentence on conversations, or pairs, that became several rows.
func chunked(c counts.Counts, kind Kind) fault.Text {
	what, cure := whole(c), fault.Textf("leave them out with {overflow} drop")
	if kind == Pairs {
		what = "pairs"
	}
	if c.DroppedTokens != nil {
		cure = fault.Textf("keep only their beginnings with {pack} bfd")
	}
	return fault.Textf("%s longer than {max-length}, cut into several rows: %s; rows that begin in their middle: %s; "+
		"raise {max-length}, or %v", what, units.Count(c.Chunked), units.Count(c.LaterRows), cure)
}

// damageLosses returns the sentence about damaged inputs.
func damageLosses(c counts.Counts) []fault.Text {
	if c.DamagedInputs == 0 {
		return nil
	}
	text := fmt.Sprintf("damaged inputs: %d, of which the dataset lacks what could not be read", c.DamagedInputs)
	if c.DamagedCutOff > 0 {
		text += fmt.Sprintf("; %d of them end early, with an unknown number of documents lost", c.DamagedCutOff)
	}
	return []fault.Text{fault.Textf("%s (see rejects.jsonl)", text)}
}

// Dropped returns sentences about what filters and Dedup left out.
func Dropped(c counts.Counts) (notes []fault.Text) {
	for _, reason := range filter.Reasons {
		n := c.DroppedBy[string(reason)]
		if n == 0 {
			continue
		}
		what := fault.Textf("documents left out by %v", fault.Option(reason))
		switch reason {
		case filter.ByMap:
			what = fault.Textf("documents left out by {map}, which answered null")
		case filter.Copied:
			what = fault.Textf("documents left out by {dedup}, as copies of earlier ones")
		case filter.ValCopy:
			what = fault.Textf("documents of the sources of val left out by {dedup}, as copies of earlier ones in either split")
		}
		notes = append(notes, fault.Textf("%v: %s of %s read", what, units.Count(n), units.Count(c.Documents)))
	}
	return notes
}

// ValRest returns the sentence on n examples that are in neither split.
func ValRest(n int64) []fault.Text {
	return counted(n, "examples in neither split: %s, the rest of a held-out document that was cut where val was full")
}

// Skipped returns sentences on what a build skipped in the inputs before a position: bytes after compressed data, and
// members of archives.
func Skipped(p *source.Position) (notes []fault.Text) {
	if t := p.Trailing; t != nil {
		note := fmt.Sprintf("%s: %d bytes after the bzip2 data, from byte %d on, were skipped", t.URI, t.Bytes, t.Offset)
		if t.Inputs > 1 {
			note += fmt.Sprintf("; %d other files had trailing bytes too", t.Inputs-1)
		}
		notes = append(notes, fault.Plain(note))
	}
	if m := p.Members; m != nil {
		note := fmt.Sprintf("%s: skipped %s", m.URI, m.Text)
		if m.More > 0 {
			note += fmt.Sprintf("; of this and %d other archives %d members", m.More, m.Count)
		}
		notes = append(notes, fault.Plain(note))
	}
	return notes
}
