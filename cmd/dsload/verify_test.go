package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/dsload/dsload/shard"
)

func TestReportDamage(t *testing.T) {
	damage := []shard.Damage{{File: "a.arrow", Err: errors.New("gone")}}
	for _, c := range []struct {
		damaged int64
		asJSON  bool
		want    string
	}{
		{1, false, "a.arrow: gone\n"},
		{2001, false, "a.arrow: gone\nand 2,000 more files\n"},
		{1, true, `{"dataset":"d","intact":false,"damage":[{"file":"a.arrow","reason":"gone"}]}` + "\n"},
		{3, true, `{"dataset":"d","intact":false,"damage":[{"file":"a.arrow","reason":"gone"}],"more":2}` + "\n"},
	} {
		var out strings.Builder
		if err := reportDamage(&out, "d", damage, c.damaged, c.asJSON); err != nil || out.String() != c.want {
			t.Errorf("%d damaged, JSON %v: %q %v, want %q", c.damaged, c.asJSON, out.String(), err, c.want)
		}
	}
}
