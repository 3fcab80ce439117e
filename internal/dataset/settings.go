package dataset

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// DiffSettings returns the first setting, in the order of settingRank, in which two JSON objects differ, as an error
// without the folder, or nil. It compares objects member by member, and anything else by its compact JSON. It ignores
// differences that mayChange, if not nil, accepts.
func DiffSettings(have, want json.RawMessage, mayChange func(name, have, want string) bool) *SettingsError {
	h, w := objectOf(have), objectOf(want)
	if h == nil || w == nil {
		if a, b := compactJSON(have), compactJSON(want); a != b {
			return &SettingsError{Have: a, Want: b}
		}
		return nil
	}
	names := slices.Collect(maps.Keys(h))
	for n := range w {
		if _, ok := h[n]; !ok {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(settingRank(a), settingRank(b)), strings.Compare(a, b))
	})
	for _, n := range names {
		d := DiffSettings(h[n], w[n], nil)
		if d == nil || mayChange != nil && d.Name == "" && mayChange(n, d.Have, d.Want) {
			continue
		}
		if d.Name != "" {
			n += "." + d.Name
		}
		d.Name = n
		return d
	}
	return nil
}

// settingRank orders settings: a build of other sources is another one, whatever else differs, and the tokenizer
// decides about others, such as eos. Both are named in their place.
func settingRank(name string) int {
	switch {
	case name == "additions":
		return 0
	case name == "sources":
		return 1
	case strings.HasPrefix(name, "tokenizer"):
		return 2
	}
	return 3
}

func objectOf(raw json.RawMessage) map[string]json.RawMessage {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return m
}

func compactJSON(raw json.RawMessage) string {
	if raw == nil {
		return "unset"
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return string(raw)
	}
	return b.String()
}

// sameBuild compares what determines the bytes of two builds. The error is a *SettingsError. If
// want.MayChange is set, have is an unfinished build.
func sameBuild(dir string, have, want BuilderOptions) error {
	diff := DiffSettings(have.Settings, want.Settings, want.MayChange)
	if diff == nil && have.Schema != want.Schema {
		h, _ := json.Marshal(have.Schema)
		w, _ := json.Marshal(want.Schema)
		diff = DiffSettings(h, w, nil)
		diff.Name = "schema." + diff.Name
	}
	// A finished dataset does not record the requested size; its settings do.
	if diff == nil && have.ShardBytes != want.ShardBytes && have.ShardBytes != 0 {
		diff = &SettingsError{Name: "shard_bytes", Have: strconv.FormatInt(have.ShardBytes, 10), Want: strconv.FormatInt(want.ShardBytes, 10)}
	}
	if diff == nil {
		return nil
	}
	diff.Dir = dir
	return diff
}

// WithSettings returns settings with more members, in sorted order.
func WithSettings(settings json.RawMessage, more map[string]any) (json.RawMessage, error) {
	members := map[string]any{}
	if err := json.Unmarshal(settings, &members); err != nil {
		return nil, err
	}
	maps.Copy(members, more)
	return json.Marshal(members)
}
