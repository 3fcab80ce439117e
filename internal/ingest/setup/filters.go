package setup

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/budget"
	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/advice"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/units"
)

func (p *Prepared) openFilter(context.Context) (err error) {
	p.Filter, err = filter.NewFilter(p.Options.Filter)
	return err
}

// withFilterFields adds the fields that conditions look at to those that are read; nil stands for
// all.
func (p *Prepared) withFilterFields(fields []string) []string {
	if fields == nil {
		return nil
	}
	for _, name := range p.Filter.FieldNames() {
		if !slices.Contains(fields, name) {
			fields = append(fields, name)
		}
	}
	return fields
}

// conditions returns the conditions on fields as the sources judge them. Only with comparisons do they
// leave out rows unread: before there were any, the checksum of a source was over all of its rows.
func (p *Prepared) conditions() (conditions []source.Condition) {
	for i, path := range p.Filter.Fields() {
		c := source.Condition{Field: path.String(), Names: []string{path.String(), path.Root()},
			Folder: func(value string, null bool) bool { return p.Filter.Folder(i, value, null) }}
		if p.Filter.Compares() && p.Options.Map == "" { // conditions are about what comes back from it
			c.Paths = [][]string{{path.String()}}
			if names := path.Names(); len(names) > 1 {
				c.Paths = append(c.Paths, names)
			}
			c.CanHold = func(s source.Stats) bool { return p.Filter.CanHold(i, filter.Extent(s)) }
		}
		conditions = append(conditions, c)
	}
	return conditions
}

// checkFields refuses conditions on fields that no record can have.
func (p *Prepared) checkFields(context.Context) error {
	fields := p.Filter.Fields()
	if len(fields) == 0 || p.Options.Map != "" { // what comes back from it has fields of its own
		return nil
	}
	if i, has, lacking := p.Phases[Train].Set.Lacking(); lacking && !p.reading.Partition {
		where := p.Options.Filter.Where
		at := slices.IndexFunc(where, func(w string) bool {
			return strings.HasPrefix(strings.TrimSpace(w), fields[i].String())
		})
		return fault.BadOption("where", where[max(at, 0)], "%v",
			advice.NoField(fields[i].Root(), "the columns are", has))
	}
	for _, phase := range p.Phases {
		if in, found := phase.Set.Fieldless(); found {
			return fault.BadOption("where", p.Options.Filter.Where[0], "records of the format %s have no fields (%s); "+
				"choose by their text with {match}, or leave files out with {exclude}",
				in.Format, uris.Shown(in.URI))
		}
	}
	return nil
}

// seenShare returns the share of the memory cap that Dedup takes with pool bytes of pages.
func seenShare(pool int64) budget.Share {
	return budget.Share{Name: "dedup", Bytes: filter.SeenBytes(pool), Why: fmt.Sprintf(
		"hashes of earlier documents: %v of them, the others in a file of the folder", units.Size(pool))}
}
