package main

import (
	"errors"
	"fmt"
	"io/fs"
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

// TestUnreadDataset: a file that this user may not read is not damaged, so nothing leads to building it again.
func TestUnreadDataset(t *testing.T) {
	denied := fmt.Errorf("open dataset: %w", &fs.PathError{Op: "open", Path: "my data/train-00000.arrow", Err: fs.ErrPermission})
	if got := unread([]shard.Damage{{Err: shard.ErrCorrupt}, {Err: denied}}); got != denied {
		t.Errorf("unread: %v", got)
	}
	if got := unread([]shard.Damage{{Err: shard.ErrCorrupt}}); got != nil {
		t.Errorf("damage is said to be unread: %v", got)
	}
	for _, c := range []struct {
		err           error
		command, want string
	}{
		{denied, "verify", "`chmod -R u+rX 'my data'`"},
		{denied, "view", "`chmod -R u+rX 'my data'`"},
		{&fs.PathError{Op: "open", Path: "page.html", Err: fs.ErrPermission}, "view", ""},
		{shard.ErrTruncated, "view", "'dsload verify 'my data'' names all"},
		{shard.ErrTruncated, "verify", ""},
	} {
		advised := adviseUnread(c.err, []string{"my data"}, c.command)
		if !errors.Is(advised, c.err) || !strings.Contains(advised.Error(), c.want) || (advised == c.err) != (c.want == "") {
			t.Errorf("%s: %v, want %q", c.command, advised, c.want)
		}
	}
}
