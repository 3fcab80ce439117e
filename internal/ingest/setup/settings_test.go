package setup

import "testing"

// Of an unfinished build, or of an unfinished addition, bad records may be skipped from now on; nothing else may change.
func TestMayChange(t *testing.T) {
	const had, fail, skip = `{"on-bad-record":"fail","max-length":9}`, `{"on-bad-record":"fail"}`, `{"on-bad-record":"skip"}`
	for _, c := range []struct {
		name, have, want string
		may              bool
	}{
		{"on-bad-record", `"fail"`, `"skip"`, true},
		{"on-bad-record", `"skip"`, `"fail"`, false},
		{"max-length", `"fail"`, `"skip"`, false},
		{"additions", "[" + had + "," + fail + "]", "[" + had + "," + skip + "]", true},
		{"additions", "[" + fail + "," + fail + "]", "[" + skip + "," + fail + "]", false},
		{"additions", "[" + skip + "]", "[" + fail + "]", false},
		{"additions", "[" + fail + "]", "[" + had + "]", false},
	} {
		if mayChange(c.name, c.have, c.want) != c.may {
			t.Errorf("%s from %s to %s: may change is %t", c.name, c.have, c.want, !c.may)
		}
	}
}
