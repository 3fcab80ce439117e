package source

import (
	"bytes"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/frame"
	"github.com/dsload/dsload/internal/jsonscan"
)

// Of a JSON file that is one object, the records may be the elements of an array in it, as in SQuAD's
// {"version": …, "data": […]}. Such an array is found if it is the only one of objects at the top, the object
// itself is not a record, since it has none of the wanted fields, and the first element has one of them.

// withRecords returns the format of an input whose text begins so, and the path below which its records lie,
// or else some of the arrays of objects in it that hold other records.
func (o *Options) withRecords(format Format, text []byte, whole bool) (_ Format, path string, others []string,
	err error) {
	if format != JSON && format != JSONL && !format.HoldsChat() || o.Format == JSONL || o.Records == frame.TopRecords {
		return format, "", nil, nil
	}
	keys, err := frame.ParseRecords(o.Records)
	if err != nil {
		return format, "", nil, err
	}
	top := lookAtTop(text, whole)
	switch {
	case keys != nil && whole && top.ended && !slices.Contains(top.keys, keys[0]) && !o.SkipDamaged:
		return format, "", nil, fault.Of(cause.Usage, "{records} %s: no key %q in the object; it has %s",
			o.Records, keys[0],
			strings.Join(top.keys[:min(len(top.keys), frame.MaxKeysNamed)], ", "))
	case keys != nil:
		return JSON, o.Records, nil, nil
	case !top.one:
		return format, "", nil, nil
	case len(top.arrays) == 1 && o.Format == Auto && o.FindChat && !top.chat && isJSONChat(top.arrays[0].first, o.TextField):
		return JSONChat, top.arrays[0].path, nil, nil
	case len(top.arrays) == 1 && o.areRecords(&top):
		return JSON, top.arrays[0].path, nil, nil
	}
	for _, array := range slices.Concat(top.arrays, top.deeper) {
		if len(others) < maxListsTold && o.readable(array.first) {
			others = append(others, array.path)
		}
	}
	return format, "", others, nil
}

// maxListsTold is how many arrays of objects of an input are kept for its errors.
const maxListsTold = 4

// jsonTop is what can be seen of the object that a text begins with.
type jsonTop struct {
	one    bool        // nothing follows the object, as far as the text goes
	ended  bool        // all of it was seen
	keys   []string    // the names of its members
	arrays []jsonArray // those of them whose values are arrays of objects
	deeper []jsonArray // such arrays in objects in the object
	chat   bool        // it is a conversation
	text   bool        // a member is a string, or an object, which may have one
}

// jsonArray is an array of objects.
type jsonArray struct {
	path  string
	first []byte // what is seen of its first element, and what follows
}

// maxListName is the longest key that records are found below.
const maxListName = 64

// lookAtTop looks at the object that a text begins with, as far as it goes.
func lookAtTop(text []byte, whole bool) (top jsonTop) {
	var s jsonscan.Scanner
	s.Reset(text)
	err := s.Members(func(key []byte) error {
		name := string(key)
		top.keys = append(top.keys, name)
		b := s.Token()
		if top.text = top.text || b == '"' || b == '{'; b == '{' {
			return top.look(&s, name, 1)
		} else if b != '[' {
			return s.Skip()
		}
		rest := s.Rest()
		inside := bytes.TrimLeft(rest[1:], " \t\r\n")
		if slices.Contains(chatLists, name) && beginsMessages(rest) {
			top.chat = true
		} else if len(inside) > 0 && inside[0] == '{' && len(name) <= maxListName && !strings.Contains(name, ".") {
			top.arrays = append(top.arrays, jsonArray{name, inside})
		}
		return s.Skip()
	})
	top.ended = err == nil
	var bounds jsonscan.Bounds
	text = bytes.TrimLeft(text, " \t\r\n")
	rest := text[bounds.Skip(text):]
	if bounds.Ended {
		top.one = top.ended && frame.IsBlank(rest)
	} else {
		top.one = !whole
	}
	return top
}

// maxLookDepth is how many objects deep arrays of objects are looked for.
const maxLookDepth = 3

// look notes the arrays of objects in an object, which the scanner is at and a path leads to.
func (top *jsonTop) look(s *jsonscan.Scanner, path string, depth int) error {
	return s.Members(func(key []byte) error {
		below := path + "." + string(key)
		b := s.Token()
		if b == '{' && depth < maxLookDepth {
			return top.look(s, below, depth+1)
		}
		if b == '[' && len(below) <= maxListName && strings.Count(below, ".") == depth {
			if inside := bytes.TrimLeft(s.Rest()[1:], " \t\r\n"); bytes.HasPrefix(inside, []byte("{")) {
				top.deeper = append(top.deeper, jsonArray{below, inside})
			}
		}
		return s.Skip()
	})
}

// questions are the fields of which a conversation without a list of messages has one.
var questions = []string{"prompt", "instruction", "question", "query", "input", "inputs", "chosen"}

// areRecords reports whether the elements of the array are what is wanted, and the object is not.
func (o *Options) areRecords(top *jsonTop) bool {
	wants := func(name string) bool { return slices.Contains(o.Fields, name) }
	if top.chat || slices.ContainsFunc(top.keys, wants) {
		return false
	}
	first := top.arrays[0].first
	if o.Fields != nil {
		return slices.ContainsFunc(lookAtTop(first, false).keys, wants)
	}
	return o.Format == Chat && !slices.ContainsFunc(top.keys, isQuestion) && o.conversations(first)
}

func isQuestion(name string) bool { return slices.Contains(questions, name) }

// readable reports whether an array of objects holds what can be read, as far as its first element is seen.
func (o *Options) readable(first []byte) bool {
	if o.Format == Chat {
		return o.conversations(first)
	}
	element := lookAtTop(first, false)
	return element.text || element.chat || !element.ended
}

// conversations reports whether an array of objects holds conversations, as far as its first element is seen.
func (o *Options) conversations(first []byte) bool {
	element := lookAtTop(first, false)
	if element.chat || !slices.ContainsFunc(element.keys, isQuestion) {
		return element.chat
	}
	return !element.ended || o.IsPair == nil || o.IsPair(element.keys)
}
