package feed

import (
	"fmt"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// Limits of a query. They bound what one request can make the server hold or compute; none of them may change a batch.
const (
	MaxBatchRows  = 1 << 16
	MaxMaxTokens  = 1 << 28
	MaxMultiple   = 1 << 16
	MaxWorld      = 1 << 20
	MaxBucketRows = 1 << 20
	maxMixParts   = 64
	maxQueryBytes = 8 << 10
)

// Query is what a client asks of /v1/batches, with defaults filled in.
type Query struct {
	Split           string
	BatchSize       int   // rows a batch; under a token budget the most rows
	MaxTokens       int64 // 0 = no budget
	PadToMultipleOf int
	MaxLength       bool // padding=max_length
	Left            bool // padding_side=left
	Shuffle         string
	Seed            uint64
	Epochs          int64
	Bucket, Group   int
	Rank, World     int
	Tail            string
	Start           int64
	Int32           bool // dtype=int32
	Labels          string
	Mix             []MixPart // nil = the only, or the first, dataset
}

// MixPart is one dataset of a mix.
type MixPart struct {
	Name   string
	Weight float64
}

type param struct {
	name string
	set  func(q *Query, v string) error
}

// params are the parameters in the order of the documentation; each sets its part of the query.
var params = []param{
	{"split", func(q *Query, v string) error { q.Split = v; return nil }},
	{"batch_size", number(func(q *Query) *int { return &q.BatchSize }, 1, MaxBatchRows)},
	{"max_tokens", number(func(q *Query) *int64 { return &q.MaxTokens }, 1, MaxMaxTokens)},
	{"pad_to_multiple_of", number(func(q *Query) *int { return &q.PadToMultipleOf }, 1, MaxMultiple)},
	{"padding", flag(func(q *Query) *bool { return &q.MaxLength }, "longest", "max_length")},
	{"padding_side", flag(func(q *Query) *bool { return &q.Left }, "right", "left")},
	{"shuffle", choice(func(q *Query) *string { return &q.Shuffle }, "full", "block", "none")},
	{"seed", setSeed},
	{"epochs", number(func(q *Query) *int64 { return &q.Epochs }, 0, math.MaxInt64)},
	{"bucket", number(func(q *Query) *int { return &q.Bucket }, 0, MaxBucketRows)},
	{"group", number(func(q *Query) *int { return &q.Group }, 1, MaxBucketRows)},
	{"rank", number(func(q *Query) *int { return &q.Rank }, 0, MaxWorld-1)},
	{"world", number(func(q *Query) *int { return &q.World }, 1, MaxWorld)},
	{"tail", choice(func(q *Query) *string { return &q.Tail }, "drop", "pad", "keep")},
	{"start", number(func(q *Query) *int64 { return &q.Start }, 0, math.MaxInt64)},
	{"dtype", flag(func(q *Query) *bool { return &q.Int32 }, "int64", "int32")},
	{"labels", choice(func(q *Query) *string { return &q.Labels }, "causal", "seq2seq", "none")},
	{"mix", setMix},
}

func number[T int | int64](field func(*Query) *T, low, high int64) func(*Query, string) error {
	return func(q *Query, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < low || n > high {
			if high == math.MaxInt64 {
				return fmt.Errorf("%q is not a whole number from %d on", v, low)
			}
			return fmt.Errorf("%q is not a whole number from %d to %d", v, low, high)
		}
		*field(q) = T(n)
		return nil
	}
}

func choice(field func(*Query) *string, allowed ...string) func(*Query, string) error {
	return func(q *Query, v string) error {
		if !slices.Contains(allowed, v) {
			return fmt.Errorf("%q is none of %s", v, strings.Join(allowed, ", "))
		}
		*field(q) = v
		return nil
	}
}

func flag(field func(*Query) *bool, off, on string) func(*Query, string) error {
	return func(q *Query, v string) error {
		if v != off && v != on {
			return fmt.Errorf("%q is neither %s nor %s", v, off, on)
		}
		*field(q) = v == on
		return nil
	}
}

func setSeed(q *Query, v string) error {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		signed, signedErr := strconv.ParseInt(v, 10, 64) // trainers use negative seeds too
		if signedErr != nil {
			return fmt.Errorf("%q is not a whole number of 64 bits", v)
		}
		n = uint64(signed)
	}
	q.Seed = n
	return nil
}

func setMix(q *Query, v string) error {
	for part := range strings.SplitSeq(v, ",") {
		name, weight, found := strings.Cut(part, "=")
		w, err := strconv.ParseFloat(weight, 64)
		if !found || name == "" || err != nil || !(w > 0) || math.IsInf(w, 0) {
			return fmt.Errorf("%q is not name=weight with a weight above 0", part)
		}
		if slices.ContainsFunc(q.Mix, func(p MixPart) bool { return p.Name == name }) {
			return fmt.Errorf("%q is named twice", name)
		}
		if len(q.Mix) == maxMixParts {
			return fmt.Errorf("more than %d datasets", maxMixParts)
		}
		q.Mix = append(q.Mix, MixPart{name, w})
	}
	return nil
}

// ParseQuery reads the raw query of a request. Unknown and repeated parameters are errors: a typing mistake must not train a model on something else.
func ParseQuery(raw string) (Query, error) {
	q := Query{
		Split: "train", PadToMultipleOf: 1, Shuffle: "full", Epochs: 1, Group: 256, World: 1, Labels: "causal",
	}
	if len(raw) > maxQueryBytes {
		return q, &RequestError{414, "query is longer than 8 KiB", "leave parameters at their defaults out"}
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return q, &RequestError{400, "query cannot be read: " + err.Error(), "write name=value&name=value, percent-encoded"}
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // the same mistake gives the same answer every time
	for _, name := range names {
		i := slices.IndexFunc(params, func(p param) bool { return p.name == name })
		if i < 0 {
			return q, BadParam(name, "no such parameter", "known are "+paramNames())
		}
		if len(values[name]) > 1 {
			return q, BadParam(name, "given more than once", "give it once")
		}
		if err := params[i].set(&q, values[name][0]); err != nil {
			return q, BadParam(name, err.Error(), "see the feed's parameters in the documentation")
		}
	}
	return q.completed()
}

// completed fills in the defaults that depend on other parameters, and checks what takes two to be wrong.
func (q Query) completed() (Query, error) {
	if q.BatchSize == 0 {
		q.BatchSize = 32
		if q.MaxTokens > 0 {
			q.BatchSize = MaxBatchRows
		}
	}
	if q.MaxTokens > 0 {
		q.BatchSize = int(min(int64(q.BatchSize), q.MaxTokens))
	}
	if q.Tail == "" {
		q.Tail = "keep"
		if q.World > 1 {
			q.Tail = "drop"
		}
	}
	if q.Rank >= q.World {
		return q, BadParam("rank", fmt.Sprintf("%d is not below world=%d", q.Rank, q.World), "ranks count from 0 to world-1")
	}
	return q, nil
}

func paramNames() string {
	var names []string
	for _, p := range params {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}
