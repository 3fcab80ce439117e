// Package advice adds to the errors that end a build what to do next: it looks at what there is, and names
// the option that reads it. All of it is in one list.
package advice

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/spelling"
)

// A record that lacks the field of the text may have it under another name, or not be a text at all: a
// question and its answer, a line of a table without names. The advice must lead to what the records
// are for, and not only avoid the error.

// answers lists pairs of fields, in lower case, that hold a question and its answer and are not
// conversations by the names that the format chat knows.
var answers = [][2]string{{"q", "a"}, {"question", "a"}, {"q", "answer"}, {"prompt", "answer"}, {"prompt", "output"},
	{"prompt", "target"}, {"question", "output"}, {"question", "solution"}, {"problem", "solution"},
	{"problem", "answer"}, {"query", "output"}, {"instruction", "completion"}, {"instruction", "answer"},
	{"instructions", "output"}, {"instructions", "response"}, {"instruction", "target"}, {"input", "target"},
	{"input", "response"}, {"input", "answer"}, {"inputs", "outputs"}, {"input_text", "target_text"},
	{"user", "assistant"}, {"human", "assistant"}, {"human", "bot"}, {"human", "gpt"}, {"source", "target"},
	{"src", "tgt"}, {"context", "response"}, {"question", "best_answer"}, {"question", "answers"},
	{"question", "final_answer"}, {"query", "answers"}, {"message", "reply"}, {"post", "reply"}}

// pairAdvice returns how to read records that hold a question and its answer, nothing for other records.
func pairAdvice(record *example.FieldError) fault.Text {
	names, inside := record.Has, record.Inside
	prompt, answer, shape := chat.PairOf(names)
	read := fault.Textf("read them as {format} chat, with a tokenizer that has a chat template or with {chat-template}")
	if prompt == "" && answer != "" {
		return fault.Textf("%q looks like the better of two answers: %v", answer, read)
	}
	isChat := answer != ""
	if !isChat {
		if prompt, answer = foldedPair(names); answer == "" {
			return fault.Text{}
		}
	}
	within, isOther := inside[prompt]
	target, answerIsOther := inside[answer]
	isOther = isOther || answerIsOther
	body := reference(prompt, within)
	for _, more := range []string{"input", "context"} {
		if prompt != more && answer != more && strings.HasPrefix(prompt, "instruction") &&
			slices.Contains(names, more) {
			body += `\n` + reference(more, "")
			break
		}
	}
	pair := fault.Textf("pass {causal-pairs} {prompt} %s {target} %s", shell.Quote(body+`\n`),
		shell.Quote(reference(answer, target)))
	switch {
	case isChat && (slices.Contains(record.Lists, prompt) || slices.Contains(record.Lists, answer)):
		return fault.Textf("%q and %q look like messages and the answer to them: %v", prompt, answer, read)
	case isChat && !isOther && shape == chat.Alpaca:
		return fault.Textf("%q and %q look like a question and its answer, as Alpaca's instruction data has them: %v; or %v",
			prompt, answer, read, pair)
	case isChat && !isOther:
		return fault.Textf("%q and %q look like a question and its answer: %v; or %v", prompt, answer, read, pair)
	}
	return fault.Textf("%q and %q look like a question and its answer: %v", prompt, answer, pair)
}

// PairTemplates returns templates of a question and its answer in a record with these fields that is no
// conversation by the names that the format chat knows, "" for other records.
func PairTemplates(record *example.FieldError) (prompt, target string) {
	names, inside := record.Has, record.Inside
	if _, answer, _ := chat.PairOf(names); answer != "" {
		return "", ""
	}
	if prompt, target = foldedPair(names); target == "" {
		return "", ""
	}
	return reference(prompt, inside[prompt]) + `\n`, reference(target, inside[target])
}

// chatAdvice returns how to read records with a list of messages in a field.
func chatAdvice(field string) fault.Text {
	if strings.EqualFold(field, "conversations") {
		return fault.Textf("read them as {format} chat, which knows ShareGPT's conversations")
	}
	return fault.Textf("read them as {format} chat")
}

// foldedPair returns the names of a question and its answer that differ from known ones, or in case.
func foldedPair(names []string) (prompt, answer string) {
	folded := make([]string, len(names))
	for i, name := range names {
		folded[i] = strings.ToLower(name)
	}
	if q, a, _ := chat.PairOf(folded); q != "" {
		return names[slices.Index(folded, q)], names[slices.Index(folded, a)]
	}
	for _, p := range answers {
		q, a := slices.Index(folded, p[0]), slices.Index(folded, p[1])
		if q >= 0 && a >= 0 {
			return names[q], names[a]
		}
	}
	return "", ""
}

var identifier = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// reference returns what writes a field, or what is inside of it, in a template.
func reference(name, inside string) string {
	if identifier.MatchString(name) {
		return "{{ " + name + inside + " }}"
	}
	return fmt.Sprintf("{{ record[%q]%s }}", name, inside)
}

// wantedField is about a record without the field of the text. It does not advise to leave such records out if
// the first record of the input is one. Records and inputs before this one may have the field, and would lack the
// one that reads this.
func wantedField(f Facts, err error) (error, bool) {
	bad := f.record(err)
	if bad == nil || f.Options.HasTemplate() {
		return err, false
	}
	field, ok := errors.AsType[*example.FieldError](bad.Cause)
	if !ok {
		return err, false
	}
	var advice fault.Text
	pair := Pair(field)
	lists := recordLists(bad, field, f.inputOf(bad))
	likely := field.Likely
	if given := f.Options.TextField; likely != "" && strings.Contains(given, "|") { // other records have those
		likely = given + "|" + likely
	}
	switch {
	case field.Chat != "":
		return fault.Advise(err, "%v", chatAdvice(field.Chat)), true
	case field.Separator != "":
		advice = fault.Textf("if %s separates the fields, pass {delimiter} %s", field.Separator,
			shell.Quote(field.Separator))
	case field.Names != nil:
		advice = fault.Textf("the first line looks like a record and not like names: name the columns, as in {columns} %s",
			shell.Quote(strings.Join(field.Names, ",")))
	case !pair.IsZero():
		advice = pair
	case field.Likely != "" && field.Usual && !lists.IsZero():
		advice = fault.Textf("take it with {text-field} %s; or, %v", shell.Quote(likely), lists)
	case field.Likely != "" && !lists.IsZero():
		advice = fault.Textf("%v; else take the text with {text-field} %s", lists, shell.Quote(likely))
	case field.Keyed && bad.Row == 1 && bad.Member == "":
		advice = fault.Textf("if the record is an object of records, write them as lines, as with `jq -c '.[]'`; "+
			"else take the text with {text-field} %s", shell.Quote(likely))
	case field.Likely != "":
		advice = fault.Textf("take it with {text-field} %s", shell.Quote(likely))
	case !lists.IsZero():
		advice = lists
	default:
		advice = fault.Textf("name the field of the text with {text-field}, or make the text with {template}")
	}
	switch {
	case bad.Row > 1 && !field.Column:
		advice = ofEveryRecord(advice)
	case bad.Input > 0 && bad.Member == "":
		advice = ofLaterSource(advice)
	}
	return fault.Advise(err, "%v", advice), true
}

// notText is about a first record whose field of the text holds something else.
func notText(f Facts, err error) (error, bool) {
	bad := f.record(err)
	if bad == nil || bad.Row != 1 || f.Options.HasTemplate() {
		return err, false
	}
	found, ok := errors.AsType[*example.NotTextError](bad.Cause)
	if !ok || found.Kind == example.Null {
		return err, false
	}
	if found.ByRow {
		return fault.Advise(err, "a table that pandas wrote column by column is written again with "+
			"to_json(NAME, orient=\"records\", lines=True)"), true
	}
	way := fault.Textf("make the text of it with {template}")
	if found.Inside != "" {
		way = fault.Textf("take the text inside it with {text-field} %s", shell.Quote(found.Inside))
	}
	return fault.Advise(err, "%v", ofEveryRecord(way)), true
}

// ofEveryRecord restricts the advice about one record to where the others are like it.
func ofEveryRecord(advice fault.Text) fault.Text {
	return fault.Textf("%v, if every record is like this; else fix it, or leave such records out with "+
		"{on-bad-record} skip", advice)
}

// ofLaterSource restricts the advice about a source after the first: those before it may have what it lacks.
func ofLaterSource(advice fault.Text) fault.Text {
	return fault.Textf("%v, if every source is like this; else build the others first, and then add this "+
		"one with {append} and its own flags, or leave it out (of a folder with {exclude})", advice)
}

// recordLists returns how to read the elements of the arrays in a record that is the whole file, or the first
// below a key.
func recordLists(bad *source.RecordError, field *example.FieldError, in source.Input) (advice fault.Text) {
	if bad.Row > 1 || bad.Member != "" {
		return advice
	}
	lists := in.Lists
	if in.Records != "" {
		lists = nil
		for _, name := range field.Lists {
			lists = append(lists, in.Records+"."+name)
		}
	}
	switch {
	case len(lists) == 0:
		return advice
	case len(lists) == 1:
		return fault.Textf("if the records are the elements of an array in it, pass {records} %s",
			shell.Quote(lists[0]))
	}
	var ways []fault.Text
	for _, list := range lists {
		ways = append(ways, fault.Textf("{records} %s", shell.Quote(list)))
	}
	return fault.Textf("if the records are the elements of an array in it, name that: %v", fault.Join(ways, " or "))
}

// Pair returns the advice for a record that is a question and its answer, and makes neither of them
// look like the text.
func Pair(field *example.FieldError) (advice fault.Text) {
	if advice = pairAdvice(field); !advice.IsZero() {
		field.Likely = ""
	}
	return advice
}

// missingColumn is about a file of columns without the one of the text.
func missingColumn(_ Facts, err error) (error, bool) {
	column, ok := errors.AsType[*source.ColumnError](err)
	if !ok {
		return err, false
	}
	advice := pairAdvice(&example.FieldError{Has: column.Has})
	switch {
	case column.Chat != "":
		advice = chatAdvice(column.Chat)
	case !advice.IsZero():
	case len(column.Has) == 1 && !example.IsQuiet(column.Has[0]):
		advice = fault.Textf("if that is the text, take it with {text-field} %s", shell.Quote(column.Has[0]))
	case len(column.Has) > 0:
		advice = fault.Textf("take one with {text-field}")
	default:
		advice = fault.Textf("make the text of columns with {template}, or leave this source out")
	}
	if column.Later {
		advice = ofLaterSource(advice)
	}
	return fault.Advise(err, "%v", advice), false
}

// NoField is the sentence about a field of a condition that no record has.
func NoField(field, has string, names []string) string {
	s := fmt.Sprintf("no record has the field %q; %s %s", field, has, spelling.First(names, maxListed))
	if near := spelling.Nearest(field, names); near != "" {
		s += "; did you mean " + near + "?"
	}
	return s
}

// maxListed is the maximum number of names that a message lists.
const maxListed = 100
