package bytebpe

import (
	"testing"

	"github.com/dsload/dsload/tokenize/builtin"
)

func builtinO200K(t testing.TB) *Model {
	t.Helper()
	if m, ok := fixtures.Load("o200k"); ok {
		return m.(*Model)
	}
	v, err := builtin.Ranks("o200k")
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(Config{Tokens: v.Tokens, Ranked: true, Split: O200K})
	if err != nil {
		t.Fatal(err)
	}
	fixtures.Store("o200k", m)
	return m
}
