package ingest

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/units"
	"github.com/dsload/dsload/shard"
)

// Losses returns sentences about what a build cut off or left out of the documents that it read,
// besides bad records and what a budget cut.
func Losses(m *shard.Manifest) []fault.Text {
	kind := texts
	var s struct {
		ChatTemplate string `json:"chat-template"`
	}
	if m.Schema.Labels || m.Schema.LossMask {
		kind = pairs
	}
	if json.Unmarshal(m.Settings, &s) == nil && s.ChatTemplate != "" { // else another program's settings
		kind = conversations
	}
	return losses(counts.Of(m.Counters, m.Dropped), kind)
}

// documentKind is what the documents of a build are.
type documentKind int

const (
	texts documentKind = iota
	pairs
	conversations
)

func (b *build) kind() documentKind {
	switch {
	case b.chat != nil:
		return conversations
	case b.hasTarget():
		return pairs
	}
	return texts
}

// losses makes sentences of the counters.
func losses(c counts.Counts, kind documentKind) []fault.Text {
	return slices.Concat(mapNotes(c), damageLosses(c), droppedNotes(c), textNotes(c), cutLosses(c, kind))
}

// textNotes warns of numbers that were compared with texts.
func textNotes(c counts.Counts) []fault.Text {
	if c.WhereAsText == 0 {
		return nil
	}
	return []fault.Text{fault.Textf("documents in which {where} compared a number with a text: %s; texts are compared by "+
		"their characters, where 10 comes before 9", units.Count(c.WhereAsText))}
}

// LeftOut returns how many documents a build left out so far, by the reason.
func LeftOut(c counts.Counts) map[string]int64 {
	out := map[string]int64{"copies of held-out documents": c.Copies, "longer than the longest row": c.Dropped,
		"empty": c.Empty}
	maps.Copy(out, c.DroppedBy)
	maps.DeleteFunc(out, func(_ string, n int64) bool { return n == 0 })
	return out
}

// cutLosses makes sentences of what was cut, or left out because nothing of it can be trained on.
func cutLosses(c counts.Counts, kind documentKind) (sentences []fault.Text) {
	add := func(n int64, format string) {
		if n > 0 {
			sentences = append(sentences, fault.Textf(format, units.Count(n)))
		}
	}
	if c.DroppedTokens != nil && c.Truncated > 0 {
		sentences = append(sentences, fault.Textf("documents cut to {max-length} by {pack} bfd: "+
			"%s, %s tokens of text dropped; {pack} bfd_split keeps them",
			units.Count(c.Truncated), units.Count(*c.DroppedTokens)))
		c.Truncated = 0 // reported above
	}
	if kind == conversations {
		add(c.Untrained, "conversations left out because no token of them is trained on: %s")
		add(c.UnfoundTurns, "turns of the assistant that are not trained on, since they were not found in the text "+
			"that the chat template writes: %s")
		add(c.WithoutTarget,
			"conversations left out because no token within {max-length} is trained on: %s; raise {max-length}")
		add(c.UntrainedRows,
			"rows without a token that is trained on: %s; they are kept as parts of their conversations")
		add(c.Truncated, "conversations cut to {max-length}: %s; the rest of each was left out")
		add(c.Empty, "conversations left out because they hold no text: %s")
		return sentences
	}
	add(c.WithoutTarget, "examples left out because no token of the target was in them: %s; "+
		"raise {max-length} to keep prompt and target together")
	if kind == pairs {
		add(c.Truncated,
			"pairs cut to {max-length}, prompt or target: %s; raise it, or leave them out with {overflow} drop")
		add(c.Empty, "pairs left out because the prompt or the target is empty: %s")
		return sentences
	}
	add(c.Truncated, "documents cut to {max-length}: %s; the rest of each was left out")
	add(c.Empty, "documents left out because they hold no text: %s")
	return sentences
}

// noExamples returns the error of a build without examples: what happened to the documents.
func (f *flusher) noExamples() error {
	s := &f.state
	if f.allDropped() {
		return f.noneLeft()
	}
	var reasons []fault.Text
	if n := s.Rejected; n > 0 {
		reason := fault.Textf("bad records skipped: %d", n)
		if len(s.Rejects) > 0 {
			first := s.Rejects[0]
			reason = fault.Textf("%v, the first of them %s, row %d: %s", reason, first.Source, first.Row, first.Reason)
		}
		reasons = append(reasons, reason)
	}
	if n := s.Dropped; n > 0 {
		reasons = append(reasons, fault.Textf("documents longer than {max-length} dropped: %d", n))
	}
	if s.Untrained > 0 {
		reasons = append(reasons, f.b.chat.whyUntrained())
	}
	reasons = append(reasons, cutLosses(s.Counts, f.b.kind())...)
	if len(reasons) == 0 {
		reasons = []fault.Text{fault.Textf("%v", source.ErrNoDocuments)}
	}
	return fault.Of(source.ErrNoDocuments, "build %s: the sources gave no examples: %v", f.b.opts.Out,
		fault.Join(reasons, "; "))
}
