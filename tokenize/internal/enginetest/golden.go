package enginetest

import "testing"

// Golden is a tokenizer of the reference data, loaded into the engine under test.
type Golden struct {
	Name string
	Load func(testing.TB) Tokenizer
}

// AllCases runs Cases for each tokenizer.
func AllCases(t *testing.T, goldens []Golden) {
	for _, g := range goldens {
		t.Run(g.Name, func(t *testing.T) { Cases(t, g.Name, g.Load(t)) })
	}
}

// AllDigests runs Digests for each tokenizer.
func AllDigests(t *testing.T, goldens []Golden) {
	for _, g := range goldens {
		t.Run(g.Name, func(t *testing.T) { Digests(t, g.Name, g.Load(t)) })
	}
}

// AllSpeeds runs Speed for each tokenizer.
func AllSpeeds(b *testing.B, goldens []Golden) {
	for _, g := range goldens {
		b.Run(g.Name, func(b *testing.B) { Speed(b, g.Load(b)) })
	}
}

// AllHostile runs Hostile for each tokenizer.
func AllHostile(b *testing.B, goldens []Golden) {
	for _, g := range goldens {
		b.Run(g.Name, func(b *testing.B) { Hostile(b, g.Load(b)) })
	}
}
