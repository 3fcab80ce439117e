package feed

import (
	"fmt"
	"maps"
	"math"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/serve/collate"
	"github.com/dsload/dsload/internal/serve/sampler"
	"github.com/dsload/dsload/internal/spelling"
)

// Limits of a query. They bound what one request can make the server hold or compute; none of them
// changes a batch.
const (
	maxBatchRows  = 1 << 16
	maxMaxTokens  = 1 << 28
	maxMultiple   = 1 << 16
	maxWorld      = 1 << 20
	maxBucketRows = 1 << 20
	maxPackLength = 1 << 20
	maxMixMembers = 64

	maxMixSegments = 64
	maxTemperature = 8
	maxQueryBytes  = 8 << 10
)

// Query is what a client asks of /v1/batches, with defaults filled in. Its words are parsed, so
// later code never meets an unknown one.
type Query struct {
	Split           string
	BatchSize       int   // rows a batch; under a token budget the most rows
	MaxTokens       int64 // 0 = no budget
	PadToMultipleOf int
	MaxLength       bool // padding=max_length
	Left            bool // padding_side=left
	Shuffle         sampler.Shuffle
	Seed            uint64
	Epochs          int64
	Bucket, Group   int
	Rank, World     int
	Tail            sampler.Tail
	Start           int64
	Int32           bool // dtype=int32
	Labels          collate.Labels
	Pack            pack.Policy // "" takes the server's default
	PackLength      int         // tokens of a packed row; 0 = the build's max-length
	MaskBorders     bool        // borders=mask
	Balance         sampler.Balance
	Mix             []MixSegment // sorted by position; nil = all datasets, weighted by rows
	Sources         bool         // sources=yes
	Narrow          bool         // wire=narrow
}

// trainSplit is the split that is trained on.
const trainSplit = "train"

// MixSegment is the mix from a row of the order on.
type MixSegment struct {
	At      int64       // 0 for the first
	Members []MixMember // nil = all datasets, weighted by rows to the power of Temperature
	// Temperature is 1 for weights by rows and 0 for equal ones.
	Temperature float64
}

// MixMember is one dataset of a mix.
type MixMember struct {
	Name   string
	Weight float64
}

// Parameter describes a parameter of /v1/batches for people.
type Parameter struct {
	Name    string
	Values  string // what it takes
	Default string
	Help    string
}

// Words returns the words that a parameter takes, nil for numbers and names.
func (p Parameter) Words() []string {
	if words := strings.Split(p.Values, ", "); len(words) > 1 {
		return words
	}
	return nil
}

// Parameters lists the parameters in documentation order.
func Parameters() (out []Parameter) {
	for _, p := range params {
		out = append(out, p.Parameter)
	}
	return out
}

type param struct {
	Parameter
	set func(q *Query, v string) error
}

// params lists the parameters; each sets its part of the query.
var params = []param{
	{Parameter{"split", "NAME", trainSplit, "which split: train, or val if the build held one out"},
		func(q *Query, v string) error { q.Split = v; return nil }},
	{Parameter{"batch_size", "N", "32", "rows per batch; with max_tokens the most"},
		number(func(q *Query) *int { return &q.BatchSize }, 1, maxBatchRows)},
	{Parameter{"max_tokens", "N", "", "bounds rows × longest of a batch"},
		number(func(q *Query) *int64 { return &q.MaxTokens }, 1, maxMaxTokens)},
	{Parameter{"pad_to_multiple_of", "N", "1", "rounds the length of a batch up to a multiple"},
		number(func(q *Query) *int { return &q.PadToMultipleOf }, 1, maxMultiple)},
	flag("padding", "longest", "max_length", "longest", "to the longest row, or to the build's --max-length",
		func(q *Query) *bool { return &q.MaxLength }),
	flag("padding_side", "right", "left", "right", "", func(q *Query) *bool { return &q.Left }),
	choice("shuffle", sampler.Shuffles, "full",
		"all rows; blocks of 256 neighbours, for slow disks; not at all",
		func(q *Query) *sampler.Shuffle { return &q.Shuffle }),
	{Parameter{"seed", "N", "0", "seed of the shuffling"}, setSeed},
	{Parameter{"epochs", "N", "1", "0 is endless; each epoch has its own order"},
		number(func(q *Query) *int64 { return &q.Epochs }, 0, math.MaxInt64)},
	{Parameter{"bucket", "N", "0", "rows of the shuffled order to sort by length, in whole groups; 0 is off"},
		number(func(q *Query) *int { return &q.Bucket }, 0, maxBucketRows)},
	{Parameter{"group", "N", "256", "rows of such a window that stay together when it is shuffled again"},
		number(func(q *Query) *int { return &q.Group }, 1, maxBucketRows)},
	{Parameter{"rank", "N", "0", "which part of each step, from 0"},
		number(func(q *Query) *int { return &q.Rank }, 0, maxWorld-1)},
	{Parameter{"world", "N", "1", "parts of each step: the number of trainers"},
		number(func(q *Query) *int { return &q.World }, 1, maxWorld)},
	choice("tail", sampler.Tails, "", "the uneven end of an epoch (keep where world is 1; else drop for a "+
		"shuffled split train, once for other splits and shuffle=none)",
		func(q *Query) *sampler.Tail { return &q.Tail }),
	{Parameter{"start", "N", "0", "row of the order to start at; epoch e begins at e × rows"},
		number(func(q *Query) *int64 { return &q.Start }, 0, math.MaxInt64)},
	flag("dtype", "int64", "int32", "int64", "elements of the list columns", func(q *Query) *bool { return &q.Int32 }),
	choice("labels", collate.AllLabels, "auto", "auto is seq2seq if the dataset has targets, else causal",
		func(q *Query) *collate.Labels { return &q.Labels }),
	choice("balance", sampler.Balances, "none",
		"batches of a step that cost the same on every rank: rows × longest, or the squares of lengths",
		func(q *Query) *sampler.Balance { return &q.Balance }),
	choice("pack", pack.Policies, "", "fill rows with several documents: cut anywhere; whole, best fit decreasing; "+
		"the same with longer ones split first (none, or what serve --pack says)",
		func(q *Query) *pack.Policy { return &q.Pack }, pack.Parse),
	{Parameter{"max_length", "N", "", "tokens of a packed row (the build's --max-length)"},
		number(func(q *Query) *int { return &q.PackLength }, 1, maxPackLength)},
	flag("borders", "keep", "mask", "mask",
		"labels at the first token of each document in packed rows: −100, so that no document predicts the next one's "+
			"beginning; or the ids", func(q *Query) *bool { return &q.MaskBorders }),
	{Parameter{"mix", "NAME=W,…", "", "weights, if several datasets are served (default their rows); " +
		"temperature:T weights by rows^T, and ;at=ROW:… changes the mix from a row on"}, setMix},
	flag("sources", "no", "yes", "no", "yes adds the columns dataset and source: which of the mix, and of its sources",
		func(q *Query) *bool { return &q.Sources }),
	flag("wire", "full", "narrow", "full",
		"narrow sends ids as wide as on disk, and no column that follows from others",
		func(q *Query) *bool { return &q.Narrow }),
}

// defaults is the query without parameters.
var defaults = func() (q Query) {
	for _, p := range params {
		if p.Default == "" {
			continue
		}
		if err := p.set(&q, p.Default); err != nil {
			panic("feed: default of " + p.Name + ": " + err.Error())
		}
	}
	return q
}()

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

// choice makes a parameter that takes one of some words, or an alias that parse knows. Errors do
// not name aliases.
func choice[T ~string](name string, words []T, unset, help string, field func(*Query) *T,
	parse ...func(string) (T, bool)) param {
	known := make([]string, len(words))
	for i, word := range words {
		known[i] = string(word)
	}
	return param{Parameter{name, strings.Join(known, ", "), unset, help}, func(q *Query, v string) error {
		for _, f := range parse {
			if word, ok := f(v); ok {
				v = string(word)
			}
		}
		if !slices.Contains(known, v) {
			return fmt.Errorf("%q is not one of %s%s", v, strings.Join(known, ", "), didYouMean(v, known))
		}
		*field(q) = T(v)
		return nil
	}}
}

// flag makes a parameter that takes one of two words.
func flag(name, off, on, unset, help string, field func(*Query) *bool) param {
	words := off + ", " + on
	if unset == on {
		words = on + ", " + off
	}
	return param{Parameter{name, words, unset, help}, func(q *Query, v string) error {
		if v != off && v != on {
			return fmt.Errorf("%q is neither %s nor %s%s", v, off, on, didYouMean(v, []string{off, on}))
		}
		*field(q) = v == on
		return nil
	}}
}

func setSeed(q *Query, v string) error {
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		signed, signedErr := strconv.ParseInt(v, 10, 64) // trainers use negative seeds
		if signedErr != nil {
			return fmt.Errorf("%q is not a 64-bit integer", v)
		}
		n = uint64(signed)
	}
	q.Seed = n
	return nil
}

// setMix parses NAME=W,… or temperature:T, and after each semicolon at=ROW: followed by the same.
func setMix(q *Query, v string) error {
	for i, text := range strings.Split(v, ";") {
		if i == maxMixSegments {
			return fmt.Errorf("more than %d changes", maxMixSegments-1)
		}
		var s MixSegment
		if i > 0 {
			at, rest, found := strings.Cut(text, ":")
			number, isAt := strings.CutPrefix(at, "at=")
			n, err := strconv.ParseInt(number, 10, 64)
			if !found || !isAt || err != nil {
				return fmt.Errorf("%q is not at=ROW:NAME=W,…", text)
			}
			if n <= q.Mix[i-1].At {
				return fmt.Errorf("at=%d is not after the change before it", n)
			}
			s.At, text = n, rest
		}
		if err := s.parse(text); err != nil {
			return err
		}
		q.Mix = append(q.Mix, s)
	}
	return nil
}

// parse sets the weights of a segment.
func (s *MixSegment) parse(text string) error {
	if t, found := strings.CutPrefix(text, "temperature:"); found {
		temperature, err := strconv.ParseFloat(t, 64)
		if err != nil || !(temperature >= 0 && temperature <= maxTemperature) {
			return fmt.Errorf("%q is not a temperature from 0 to %d", t, maxTemperature)
		}
		s.Temperature = temperature
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, weight, found := strings.Cut(part, "=")
		w, err := strconv.ParseFloat(weight, 64)
		if !found || name == "" || err != nil || !(w > 0) || math.IsInf(w, 0) {
			return fmt.Errorf("%q is not name=weight with a weight above 0", part)
		}
		if slices.ContainsFunc(s.Members, func(p MixMember) bool { return p.Name == name }) {
			return fmt.Errorf("%q is named twice", name)
		}
		if len(s.Members) == maxMixMembers {
			return fmt.Errorf("more than %d datasets", maxMixMembers)
		}
		s.Members = append(s.Members, MixMember{name, w})
	}
	return nil
}

// ParseQuery reads the raw query of a request for batches.
func ParseQuery(raw string) (Query, error) {
	q := defaults
	values, err := parameters(raw, paramNames())
	if err != nil {
		return q, err
	}
	if values.Has("max_tokens") {
		q.BatchSize = maxBatchRows // the budget is the limit, unless batch_size sets another
	}
	// In a fixed order, so that the same mistake gives the same answer.
	for _, name := range slices.Sorted(maps.Keys(values)) {
		i := slices.IndexFunc(params, func(p param) bool { return p.Name == name })
		if err := params[i].set(&q, values.Get(name)); err != nil {
			return q, BadParam(name, err.Error(), "'dsload help batches' describes the parameters")
		}
	}
	if q.Group != defaults.Group && !values.Has("bucket") {
		return q, BadParam("group", "no window of rows is sorted by length",
			"ask for bucket=2048 or another window too, or leave group out")
	}
	return q.completed()
}

// parameters splits the raw query of a request into parameters with known names. Unknown and
// repeated ones are errors: a typo must not train a model on something else.
func parameters(raw string, known []string) (url.Values, error) {
	if len(raw) > maxQueryBytes {
		return nil, &RequestError{414, "query is longer than 8 KiB", "leave parameters at their defaults out"}
	}
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, &RequestError{400, "query cannot be read: " + err.Error(),
			"write name=value&name=value, percent-encoded"}
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(known, name) {
			return nil, BadParam(name, "no such parameter"+didYouMean(name, known),
				"known are "+strings.Join(known, ", "))
		}
		if len(values[name]) > 1 {
			return nil, BadParam(name, "given more than once", "give it once")
		}
	}
	return values, nil
}

// completed fills in the defaults that depend on other parameters, and checks parameters against
// each other.
func (q Query) completed() (Query, error) {
	if q.MaxTokens > 0 {
		q.BatchSize = int(min(int64(q.BatchSize), q.MaxTokens))
	}
	if q.Tail == "" {
		switch {
		case q.World == 1:
			q.Tail = sampler.Keep
		case q.Split == trainSplit && q.Shuffle != sampler.None:
			q.Tail = sampler.Drop
		default:
			q.Tail = sampler.Once // an evaluation: rows left out would be the same ones each time
		}
	}
	if q.Rank >= q.World {
		return q, BadParam("rank", fmt.Sprintf("%d is not below world=%d", q.Rank, q.World),
			"ranks count from 0 to world-1")
	}
	return q, nil
}

func paramNames() (names []string) {
	for _, p := range params {
		names = append(names, p.Name)
	}
	return names
}

// didYouMean suggests the known word nearest to given, if one is near.
func didYouMean(given string, known []string) string {
	if near := spelling.Nearest(given, known); near != "" {
		return "; did you mean " + near + "?"
	}
	return ""
}
