package chat

import (
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example/values"
	"github.com/dsload/dsload/internal/ingest/jinja"
)

// mark is what a record says of the loss of a message.
type mark int8

const (
	unmarked mark = iota
	wanted
	unwanted
)

// markFields are the fields that mark the loss: of a message, or of a record, with a value for each message of
// its list or one for all.
var markFields = []string{"train", "training", "trainable", "loss", "loss_mask", "weight", "loss_weight", "loss_scale"}

// markOf returns the mark that a value is. ok is false for other values, such as weights between 0 and 1.
func markOf(v any) (m mark, ok bool) {
	switch v := v.(type) {
	case nil:
		return unmarked, true
	case bool:
		if v {
			return wanted, true
		}
		return unwanted, true
	case int64:
		return markOf(float64(v))
	case float64:
		if v == 0 || v == 1 {
			return markOf(v == 1)
		}
	case string: // a value of CSV
		if b, err := strconv.ParseBool(strings.ToLower(v)); err == nil && len(v) != 1 || v == "0" || v == "1" {
			return markOf(b)
		}
		if f, err := strconv.ParseFloat(v, 64); err == nil {
			return markOf(f)
		}
	}
	return unmarked, false
}

// errMark refuses a value that is no mark.
func errMark(field string, v any) error {
	return fault.Errorf("%q is %s, and a message is trained on or is not: 0, 1, true and false are known; change it, "+
		"as with {map}, or leave it out", field, shown(v))
}

// ownMark returns the mark of a message.
func (c *conversation) ownMark(m *jinja.Dict) (mark, error) {
	found := c.marks[m]
	if c.without {
		found = unwanted
	}
	if bare(m) {
		return found, nil
	}
	for _, field := range markFields {
		own, ok := markOf(get(m, field))
		if !ok {
			return unmarked, errMark(field, get(m, field))
		}
		found = max(found, own) // what one of two marks leaves out is left out
	}
	if has(m, "train_detail") {
		return unmarked, fault.Errorf(`"train_detail" marks parts of it, and a message is trained on as a whole or is not; ` +
			"leave the field out, as with {map}")
	}
	return found, nil
}

// marksBeside reads the marks of a record for the messages of its list, of which there are n; for the whole
// conversation where there is none.
func (c *conversation) marksBeside(n int) (marks []mark, err error) {
	for _, field := range markFields {
		v := peek(c.record, field)
		if v == nil {
			continue
		}
		if s, ok := v.(string); ok && strings.HasPrefix(s, "[") {
			if v, err = c.worker.decoder.parse(s); err != nil {
				return nil, fault.Of(ErrShape, "%q is a string but not a JSON list", field)
			}
		}
		list, isList := v.(*jinja.List)
		if one, ok := markOf(v); !isList && (ok || isWeight(field, v)) {
			if !ok {
				return nil, fault.Of(ErrShape, "%v", errMark(field, v))
			}
			if one != unmarked {
				c.use(field)
			}
			c.without = c.without || one == unwanted
			continue
		}
		if !isList || n < 0 {
			continue
		}
		if len(list.Items) != n {
			return nil, fault.Of(ErrShape, "%q has %d values for %d messages; it needs one for each", field,
				len(list.Items), n)
		}
		c.use(field)
		if marks == nil {
			marks = make([]mark, n)
		}
		for i, item := range list.Items {
			own, ok := markOf(item)
			if !ok {
				return nil, fault.Of(ErrShape, "message %d: %v", i+1, errMark(field, item))
			}
			marks[i] = max(marks[i], own)
		}
	}
	return marks, nil
}

// mark marks the messages of one element of a list. Of a turn with a question only the answer can be wanted.
func (c *conversation) mark(messages []*jinja.Dict, as mark) {
	if c.marks == nil {
		c.marks = map[*jinja.Dict]mark{}
	}
	for _, m := range messages {
		if as != wanted || len(messages) == 1 || c.meaning(m) == "assistant" {
			c.marks[m] = as
		}
	}
}

// isWeight reports whether the value of a field of a record is the weight of its conversation.
func isWeight(field string, v any) bool {
	if s, ok := v.(string); ok {
		_, err := strconv.ParseFloat(s, 64)
		return err == nil && strings.HasSuffix(field, "weight")
	}
	return kindOf(v) == kindOf(0.0) && strings.HasSuffix(field, "weight")
}

// checkMark returns an error for a mark that would have no effect.
func (o *Options) checkMark(m mark, role string) error {
	switch {
	case m == wanted && role != "assistant" && o.TrainOn != TrainAll:
		return fault.Errorf("it is marked to be trained on and its role is %s, but only what the assistant says is; "+
			"leave the mark out, as with {map}, or pass {train-on} all", values.Shorten(role))
	case m == unwanted && o.TrainOn == TrainAll:
		return fault.Errorf("it is marked not to be trained on, and {train-on} all trains on every token; " +
			"leave {train-on} out, or the mark, as with {map}")
	}
	return nil
}

// answerLabels are the fields of unpaired preferences that say whether the answer is a good one.
var answerLabels = []string{"label", "kto_tag"}

// checkLabel refuses the bad answers of unpaired preferences.
func (c *conversation) checkLabel() error {
	for _, field := range answerLabels {
		v := peek(c.record, field)
		good, isBool := v.(bool)
		written := "true"
		if s, ok := v.(string); ok && (strings.EqualFold(s, "true") || strings.EqualFold(s, "false")) { // CSV has no booleans
			good, isBool = strings.EqualFold(s, "true"), true
			if s[0] == 'F' {
				written = "True"
			}
		}
		if !isBool {
			continue
		}
		c.use(field)
		if !good {
			return fault.Of(ErrShape, "its answer is marked as a bad one: %q is false; keep the good ones with "+
				"{where} %s=%s, or, if it means something else, take the field out with {map}", field, field, written)
		}
	}
	return nil
}
