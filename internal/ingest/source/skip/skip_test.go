package skip

import "testing"

func TestCounts(t *testing.T) {
	var c Counts
	if c.Text(true) != "" || c.Total() != 0 {
		t.Errorf("nothing: %q", c.Text(true))
	}
	c.Add(Image, "a.png")
	c.Add(Hidden, ".b")
	c.Add(Hidden, ".a")
	c.Add(BuiltFolder, "y")
	c.Add(BuiltFolder, "x")
	c.Add(NotIncluded, "c.txt")
	c.Add(OtherFolder, "d.txt")
	const want = "1 image (a.png), 2 hidden ones (.b, …), 2 folders of datasets that dsload built (x, …)"
	if got := c.Text(false); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := c.Text(true); got != want+", 1 left out by pattern" {
		t.Errorf("all: %q", got)
	}
	var known Counts
	if known.Add(Known, "a.txt"); known.ReadIfNamed() || !c.ReadIfNamed() {
		t.Errorf("read where it is named: what is known %v, a hidden file %v", known.ReadIfNamed(), c.ReadIfNamed())
	}
	if c.Total() != 6 || c.Unneeded() != 1 {
		t.Errorf("%d skipped, %d not needed", c.Total(), c.Unneeded())
	}
}

func TestNames(t *testing.T) {
	for name, want := range map[string][2]bool{"README.md": {true, false}, "a.sha256": {true, false},
		"x.txt": {false, false}, ".x": {false, true}, "_SUCCESS": {false, true}, "manifest.json": {true, false}} {
		if got := [2]bool{IsDescribing(name), IsHidden(name)}; got != want {
			t.Errorf("%s: describing, hidden: %v, want %v", name, got, want)
		}
	}
}
