package ingest

import (
	"fmt"
	"maps"
	"slices"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/job"
	"github.com/dsload/dsload/internal/shell"
)

// unmet names the roles that the option Roles maps and no message has, and reasoning to drop that no message has.
func (f *flusher) unmet() (notes []fault.Text) {
	if o := &f.b.opts; f.b.partition == nil && o.Reasoning == chat.DropReasoning && f.state.ReasoningDropped == 0 &&
		!o.Inherits("reasoning") {
		notes = append(notes, fault.Textf("{reasoning} drop has no effect: no message has reasoning, in a field or in its "+
			"content before what ends it, such as </think>"))
	}
	roles, _ := chat.ParseRoles(f.b.opts.Roles) // checked before the build
	for _, role := range slices.Sorted(maps.Keys(roles)) {
		if f.b.partition == nil && !slices.Contains(f.state.MappedRoles, role) {
			notes = append(notes, fault.Textf("{roles} %s has no effect: no message has the role %s",
				shell.Quote(role+"="+roles[role]), role))
		}
	}
	return notes
}

// countChat counts n conversations like d by their shape, and what the template did not write of them. Of one whose turns
// were not found, n is 1.
func (f *flusher) countChat(d *job.Document, n int64) {
	s, c := &f.state, d.Conversation
	s.CountShape(string(c.Shape), n)
	if c.ToolsLeftOut {
		s.ToolsLeftOut += n
	}
	s.ThoughtsLeftOut += n * int64(c.ThoughtsLeftOut)
	s.BesideCalls += n * int64(c.BesideCalls)
	for _, role := range c.MappedRoles {
		if !slices.Contains(s.MappedRoles, role) {
			s.MappedRoles = append(s.MappedRoles, role)
		}
	}
	if len(s.UnknownRoles) == 0 {
		s.UnknownRoles = c.UnknownRoles
	}
	s.ReasoningDropped += n * int64(c.ReasoningDropped)
	s.Turns += n * int64(d.Turns.End-d.Turns.Start)
	if c.RejectedLeftOut {
		s.RejectedLeftOut += n
	}
	if c.Unfound == 0 {
		return
	}
	if s.Unfound.Conversations == 0 {
		uri := f.b.Phases[s.Phase].Set.URI(d.Input)
		if d.Member != "" {
			uri += ", member " + d.Member
		}
		s.Unfound.First = fmt.Sprintf("message %d of %s, row %d", c.FirstUnfound, uri, d.Row)
	}
	s.UnfoundTurns += int64(c.Unfound)
	s.Unfound.Conversations++
}
