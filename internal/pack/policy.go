package pack

import (
	"maps"
	"slices"
)

// Policy is how rows are filled.
type Policy string

const (
	None     Policy = "none"      // each item is a separate row
	Wrapped  Policy = "wrapped"   // one item after another, cut anywhere
	BFD      Policy = "bfd"       // best fit decreasing of whole items; longer ones are truncated
	BFDSplit Policy = "bfd_split" // best fit decreasing; longer items are split first
)

// Policies lists all policies.
var Policies = []Policy{None, Wrapped, BFD, BFDSplit}

// aliases maps other names to policies.
var aliases = map[string]Policy{"concat": Wrapped, "bestfit": BFD}

// Aliases returns the other names.
func Aliases() []string { return slices.Sorted(maps.Keys(aliases)) }

// Parse returns the policy with that name or alias.
func Parse(name string) (Policy, bool) {
	if p, ok := aliases[name]; ok {
		return p, true
	}
	p := Policy(name)
	return p, slices.Contains(Policies, p)
}

// MaxLength is the length in tokens of the longest row that can be packed, since tables grow with
// it.
const MaxLength = 1 << 20
