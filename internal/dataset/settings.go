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

// diffSettings returns the first setting, in sorted order after those of the tokenizer, in which two JSON
// objects differ. It compares objects member by member, and anything else by its compact JSON. It ignores
// differences that mayChange accepts.
func diffSettings(have, want json.RawMessage, mayChange func(name, have, want string) bool) (name, haveValue,
	wantValue string, differ bool) {
	h, w := objectOf(have), objectOf(want)
	if h == nil || w == nil {
		a, b := compactJSON(have), compactJSON(want)
		return "", a, b, a != b
	}
	names := slices.Sorted(maps.Keys(h))
	for n := range w {
		if _, ok := h[n]; !ok {
			names = append(names, n)
		}
	}
	// The tokenizer decides about others, such as eos, and is named in their place.
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(tokenizerFirst(a), tokenizerFirst(b)), strings.Compare(a, b))
	})
	for _, n := range names {
		sub, a, b, differ := diffSettings(h[n], w[n], nil)
		if !differ || mayChange != nil && sub == "" && mayChange(n, a, b) {
			continue
		}
		if sub != "" {
			n += "." + sub
		}
		return n, a, b, true
	}
	return "", "", "", false
}

func tokenizerFirst(name string) int {
	if strings.HasPrefix(name, "tokenizer") {
		return 0
	}
	return 1
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
	if name, h, w, differ := diffSettings(have.Settings, want.Settings, want.MayChange); differ {
		return &SettingsError{Dir: dir, Name: name, Have: h, Want: w}
	}
	if have.Schema != want.Schema {
		h, _ := json.Marshal(have.Schema)
		w, _ := json.Marshal(want.Schema)
		name, a, b, _ := diffSettings(h, w, nil)
		return &SettingsError{Dir: dir, Name: "schema." + name, Have: a, Want: b}
	}
	// A finished dataset does not record the requested size; its settings do.
	if have.ShardBytes != want.ShardBytes && have.ShardBytes != 0 {
		return &SettingsError{Dir: dir, Name: "shard_bytes",
			Have: strconv.FormatInt(have.ShardBytes, 10), Want: strconv.FormatInt(want.ShardBytes, 10)}
	}
	return nil
}

// DiffSettings returns the first setting, in sorted order, in which two JSON objects differ.
func DiffSettings(have, want json.RawMessage) (name, haveValue, wantValue string, differ bool) {
	return diffSettings(have, want, nil)
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
