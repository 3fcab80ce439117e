package build

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/loader"
	"github.com/dsload/dsload/loader/build/example"
	"github.com/dsload/dsload/loader/build/example/chat"
	"github.com/dsload/dsload/loader/build/source"
)

// A record that lacks the field of the text may have it under another name, or be no text at all: a
// question and its answer, a line of a table without names. What is advised must make what the records
// are for, not only end the error.

// answers lists pairs of fields, in lower case, that hold a question and its answer and are not
// conversations by the names that `format` chat knows.
var answers = [][2]string{{"q", "a"}, {"question", "a"}, {"q", "answer"}, {"prompt", "answer"}, {"prompt", "output"},
	{"prompt", "target"}, {"question", "output"}, {"question", "solution"}, {"problem", "solution"},
	{"problem", "answer"}, {"query", "output"}, {"instruction", "completion"}, {"instruction", "answer"},
	{"instructions", "output"}, {"instructions", "response"}, {"instruction", "target"}, {"input", "target"},
	{"input", "response"}, {"input", "answer"}, {"inputs", "outputs"}, {"input_text", "target_text"},
	{"user", "assistant"}, {"human", "assistant"}, {"human", "bot"}, {"human", "gpt"}, {"source", "target"},
	{"src", "tgt"}, {"context", "response"}, {"question", "best_answer"}, {"question", "answers"},
	{"question", "final_answer"}, {"query", "answers"}, {"message", "reply"}, {"post", "reply"}}

// pairAdvice says how to read records that hold a question and its answer, "" for other records.
func pairAdvice(names []string) string {
	prompt, answer := chat.PairOf(names)
	const read = "read them as `format` chat, with a tokenizer that has a chat template or with `chat-template`"
	if prompt == "" && answer != "" {
		return fmt.Sprintf("%q looks like the better of two answers: %s", answer, read)
	}
	isChat := answer != ""
	if !isChat {
		if prompt, answer = foldedPair(names); answer == "" {
			return ""
		}
	}
	body := reference(prompt)
	for _, more := range []string{"input", "context"} {
		if prompt != more && answer != more && strings.HasPrefix(prompt, "instruction") && slices.Contains(names, more) {
			body += `{{"\n"}}` + reference(more)
			break
		}
	}
	template := fmt.Sprintf(`{{define "prompt"}}%s{{"\n"}}{{end}}{{define "target"}}%s{{end}}`, body, reference(answer))
	pair := "pass `causal-pairs` with `template` and a file such as " + template
	if isChat {
		return fmt.Sprintf("%q and %q look like a question and its answer: %s; or %s", prompt, answer, read, pair)
	}
	return fmt.Sprintf("%q and %q look like a question and its answer: %s", prompt, answer, pair)
}

// foldedPair returns the names of a question and its answer that differ from known ones, or in case.
func foldedPair(names []string) (prompt, answer string) {
	folded := make([]string, len(names))
	for i, name := range names {
		folded[i] = strings.ToLower(name)
	}
	if q, a := chat.PairOf(folded); q != "" {
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

// reference returns what writes a field in a template.
func reference(name string) string {
	if identifier.MatchString(name) {
		return "{{." + name + "}}"
	}
	return fmt.Sprintf("{{index . %q}}", name)
}

// adviseField adds to the error of a record that lacks the wanted field what to do: leaving such
// records out is no advice where the first record of the input is one.
func adviseField(err error, field *example.FieldError, row int64) error {
	var advice []string
	pair := withoutHalf(field)
	switch {
	case field.Chat != "":
		return err // it says what to do
	case field.Separator != "":
		advice = append(advice, fmt.Sprintf("if %s separates the fields, pass `delimiter` %s", field.Separator,
			shell.Quote(field.Separator)))
	case field.Names != nil:
		advice = append(advice, "the first line looks like a record and not like names: name the columns, as in `columns` "+
			shell.Quote(strings.Join(field.Names, ",")))
	case pair != "":
		advice = append(advice, pair)
	case field.Likely != "":
		advice = append(advice, "take it with `text-field` "+shell.Quote(field.Likely))
	default:
		advice = append(advice, "name the field of the text with `text-field`, or make the text with `template`")
	}
	if row > 1 && !field.Column {
		advice = append(advice, "or leave such records out with `on-bad-record` skip")
	}
	return fmt.Errorf("%w; %s", err, strings.Join(advice, ", "))
}

// withoutHalf returns the advice for a record that is a question and its answer, and makes neither of them
// look like the text.
func withoutHalf(field *example.FieldError) (advice string) {
	if advice = pairAdvice(field.Has); advice != "" {
		field.Likely = ""
	}
	return advice
}

// adviseColumn adds to the error of a file of columns without the one of the text what to do.
func adviseColumn(err error) error {
	var column *source.ColumnError
	if !errors.As(err, &column) || column.Chat != "" {
		return err
	}
	if advice := pairAdvice(column.Has); advice != "" {
		return fmt.Errorf("%w; %s", err, advice)
	}
	if len(column.Has) > 0 {
		return fmt.Errorf("%w; take one with `text-field`", err)
	}
	return err
}

// noField is the sentence about a field of a condition that no record has.
func noField(field, has string, names []string) string {
	s := fmt.Sprintf("no record has the field %q; %s %s", field, has, listed(names))
	if near := loader.Nearest(field, names); near != "" {
		s += "; did you mean " + near + "?"
	}
	return s
}

// maxListed is the maximum number of names that a message lists.
const maxListed = 100

func listed(names []string) string {
	if len(names) > maxListed {
		return strings.Join(names[:maxListed], ", ") + fmt.Sprintf(" and %d more", len(names)-maxListed)
	}
	return strings.Join(names, ", ")
}
