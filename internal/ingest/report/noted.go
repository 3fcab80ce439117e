package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/counts"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/units"
)

// Unfound counts the turns of the assistant that were not found in the texts of their conversations.
type Unfound struct {
	Conversations int64  `json:"conversations"`
	First         string `json:"first"` // where the first of these turns is
}

// Notes returns a sentence on where the turns are.
func (u *Unfound) Notes() []fault.Text {
	if u.Conversations == 0 {
		return nil
	}
	return []fault.Text{fault.Textf("the turns that were not found are in %d conversations; the first is %s; "+
		"'dsload tokenizer chat' shows what a chat template writes", u.Conversations, u.First)}
}

// Found returns sentences on how the records held their conversations, and which fields held their texts.
func Found(c *counts.Counts) (notes []fault.Text) {
	for _, found := range []struct {
		what, as string
		n        map[string]int64
	}{{"conversations found", " as ", c.Shapes}, {"texts found", " in the field ", c.Fields}} {
		var parts []string
		for _, name := range slices.Sorted(maps.Keys(found.n)) {
			parts = append(parts, units.Count(found.n[name])+found.as+name)
		}
		if len(parts) > 0 {
			notes = append(notes, fault.Plain(found.what+": "+strings.Join(parts, ", ")))
		}
	}
	return notes
}

// Shared counts the documents of the sources of val that train has too.
type Shared struct {
	Met      []uint64 `json:"met,omitempty"` // hashes of documents of train that val has
	InTrain  int64    `json:"in_train,omitempty"`
	Compared int64    `json:"compared,omitempty"` // how many of val were compared, if not all
}

// Notes returns the sentence about them.
func (s *Shared) Notes() []fault.Text {
	if s.InTrain == 0 {
		return nil
	}
	among := ""
	if s.Compared > 0 {
		among = fmt.Sprintf(", among the first %s, which were compared", units.Count(s.Compared))
	}
	return []fault.Text{fault.Textf("documents of {val} that are in train too: %s%s; {dedup} exact leaves them out of val",
		units.Count(s.InTrain), among)}
}

// Damaged records what was left out of damaged inputs.
type Damaged struct {
	Last  int    `json:"last"`  // the input of the phase that was counted last, from 1 on
	First string `json:"first"` // what was lost first
}

// Warnings returns what the summary must say about damage to a number of inputs.
func (d *Damaged) Warnings(inputs int64) []fault.Text {
	if inputs == 0 {
		return nil
	}
	return []fault.Text{fault.Textf("damaged inputs: %d; what could not be read of them is not in the dataset; the first: %s",
		inputs, d.First)}
}

// LineStats describes the documents that are lines of text because no format was given. It shows readers of
// the summary what a document is.
type LineStats struct {
	Documents int64 `json:"documents"`
	Tokens    int64 `json:"tokens"`
	Bytes     int64 `json:"bytes"`
	// Before are the rows of train and val, in this part of the build, before those of the first line.
	Before [2]int64 `json:"before,omitzero"`
}

// Add adds what another part of the build counted.
func (l *LineStats) Add(other LineStats) {
	l.Documents += other.Documents
	l.Tokens += other.Tokens
	l.Bytes += other.Bytes
}

// Notes returns a sentence on how long the lines are, nothing if there are none.
func (l *LineStats) Notes() []fault.Text {
	if l.Documents == 0 {
		return nil
	}
	n := float64(l.Documents)
	return []fault.Text{fault.Textf("a line of text is a document: %.1f tokens, %.0f bytes of text on average; "+
		"{format} document makes one of a whole file", float64(l.Tokens)/n, float64(l.Bytes)/n)}
}
