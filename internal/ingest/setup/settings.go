package setup

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source/uris"
	"github.com/dsload/dsload/internal/pack"
)

// tokenOf returns the token with an id, "" for none.
func tokenOf(id *uint32) option.Token {
	if id == nil {
		return ""
	}
	return option.Token(strconv.FormatUint(uint64(*id), 10))
}

// Settings returns the settings as the manifest has them: templates and tokens by what they are rather than
// by their names, and defaults of options that few builds use unset.
func (p *Prepared) Settings() (json.RawMessage, error) {
	s := p.Options.Settings
	s.Sources, s.ValSources = Redacted(s.Sources), Redacted(s.ValSources)
	s.TokenizerFingerprint = p.Tokenizer.Fingerprint()
	s.Template, s.Prompt, s.Target = p.Templates.Text, p.Templates.Prompt, p.Templates.Target
	s.EOS, s.BOS = tokenOf(p.Ends.eos), tokenOf(p.Ends.bos)
	if s.Pack != pack.None {
		s.Overflow = example.Chunk // the policy decides, and is named where it differs
	}
	unset(&s.Pack, pack.None)
	unset(&s.Dedup, filter.None)
	unset(&s.Sample, 1)
	unset(&s.SpecialTokens, option.SpecialOfDocument)
	s.ChatTemplate, s.ToolTemplate, s.Date = "", "", ""
	if p.Chat != nil {
		s.ChatTemplate, s.ToolTemplate, s.Date = p.Chat.Template, p.Chat.ToolTemplate, p.Chat.Date
	}
	unset(&s.ToolTemplate, s.ChatTemplate)
	unset(&s.TrainOn, chat.TrainAssistant)
	unset(&s.Reasoning, chat.KeepReasoning)
	return json.Marshal(s)
}

// unset makes a value that is the usual one zero.
func unset[T comparable](value *T, usual T) {
	if *value == usual {
		*value = *new(T)
	}
}

// Redacted returns sources without the credentials of their addresses, which may differ from run to
// run.
func Redacted(sources []string) []string {
	if !slices.ContainsFunc(sources, uris.IsRemote) {
		return sources
	}
	out := make([]string, len(sources))
	for i, s := range sources {
		out[i] = uris.Redact(s)
	}
	return out
}

// mayChange reports whether an unfinished build may resume with another value of a setting: records
// that were read were good, or it would have failed. An addition has the setting among its own.
func mayChange(name, have, want string) bool {
	if name == "additions" {
		const fail, skip = `"on-bad-record":"fail"`, `"on-bad-record":"skip"`
		last := strings.LastIndex(have, fail)
		return last >= 0 && have[:last]+skip+have[last+len(fail):] == want
	}
	return name == "on-bad-record" && have == `"fail"` && want == `"skip"`
}
