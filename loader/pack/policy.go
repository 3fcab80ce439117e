package pack

import "slices"

// Policy is how rows are filled.
type Policy string

const (
	None     Policy = "none"      // each item is a row of its own
	Wrapped  Policy = "wrapped"   // one after another, cut anywhere
	BFD      Policy = "bfd"       // best fit decreasing of whole items, longer ones are truncated
	BFDSplit Policy = "bfd_split" // the same, longer ones are split first
)

// Policies are all policies by their own names.
var Policies = []Policy{None, Wrapped, BFD, BFDSplit}

// aliases are other names of policies.
var aliases = map[string]Policy{"concat": Wrapped, "bestfit": BFD}

// Parse returns the policy of a name or an alias.
func Parse(name string) (Policy, bool) {
	if p, ok := aliases[name]; ok {
		return p, true
	}
	p := Policy(name)
	return p, slices.Contains(Policies, p)
}

// MaxLength is the longest row in tokens that is packed: tables grow with it.
const MaxLength = 1 << 20
