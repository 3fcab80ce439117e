package ingest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/ingest/example/chat"
	"github.com/dsload/dsload/internal/ingest/filter"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/shard"
)

// explainFolder adds what to do to the error for a folder that cannot be built into, and says in words that it
// holds a build with other sources or additions.
func (b *build) explainFolder(err error) error {
	var other *shard.SettingsError
	var locked *shard.LockedError
	var damaged *shard.FileError
	var path *fs.PathError
	switch {
	case errors.As(err, &path) && path.Op == "mkdir" && errors.Is(err, fs.ErrNotExist):
		return fault.BadOption("out", b.opts.Out, "no folder can be made there (%v); name another one", err)
	case errors.As(err, &other):
		return b.explainSettings(other)
	case errors.As(err, &locked):
		return fault.Advise(err, "wait for it, or use another {out}")
	case errors.Is(err, shard.ErrForeign) && (b.partition != nil || b.opts.Overwrite || !shard.HoldsBuild(b.opts.FS, b.opts.Out)):
		return fault.Advise(err, "choose another {out}")
	case errors.Is(err, shard.ErrForeign):
		return fault.Advise(err, "choose another {out}, or {overwrite} to replace what dsload wrote there")
	case errors.As(err, &damaged) && fault.KindOf(err) == fault.Corrupt && b.opts.Append:
		return fault.Advise(err, "{overwrite} starts the addition afresh")
	case errors.As(err, &damaged) && fault.KindOf(err) == fault.Corrupt:
		return fault.Advise(err, "{overwrite} starts afresh")
	}
	return err
}

// explainSettings says in words how a build differs from the one in its folder.
func (b *build) explainSettings(other *shard.SettingsError) error {
	switch {
	case other.Name == "additions" && !b.opts.Append:
		return fault.Of(other,
			"%s has additions since it was built: %s; to add more, give {append}; to build it without "+
				"them, give {overwrite} or choose another {out}", other.Dir, additionNames(other.Have))
	case other.Name == "additions":
		return fault.Of(other,
			"%s holds unfinished additions: %s; finish them with the same command as before, or give "+
				"them up with {append} and {overwrite}", other.Dir, additionNames(other.Have))
	case other.Name == "sources" && !b.opts.Append:
		err := fault.Of(other,
			"%s holds a build of %s, not of %s; use the same sources, another {out}, or {overwrite} to "+
				"start afresh", other.Dir, namedSources(other.Have), namedSources(other.Want))
		if _, unfinished := shard.ReadManifest(b.opts.FS, b.opts.Out); unfinished == nil {
			err = fault.Advise(err, "{append} adds new sources")
		}
		return err
	}
	shown := *other
	shown.Have, shown.Want = asTyped.Replace(other.Have), asTyped.Replace(other.Want)
	return fault.Advise(&shown, "use the same settings, another {out}, or {overwrite} to start afresh")
}

// asTyped writes characters as people type them. In the JSON of datasets they are escapes.
var asTyped = strings.NewReplacer(`\u003c`, "<", `\u003e`, ">", `\u0026`, "&")

// maxSourcesNamed is how many sources an error names.
const maxSourcesNamed = 5

// additionNames names the sources of the additions in a value of the setting additions.
func additionNames(value string) string {
	var additions []struct {
		Sources []string `json:"sources"`
	}
	if json.Unmarshal([]byte(value), &additions) != nil {
		return "none"
	}
	var all []string
	for _, a := range additions {
		all = append(all, a.Sources...)
	}
	return listNames(all)
}

// namedSources names the sources in a value of the setting sources.
func namedSources(value string) string {
	var names []string
	if json.Unmarshal([]byte(value), &names) != nil {
		return "other sources"
	}
	return listNames(names)
}

func listNames(names []string) string {
	if more := len(names) - maxSourcesNamed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxSourcesNamed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// tokenOf returns the token with an id, "" for none.
func tokenOf(id *uint32) option.Token {
	if id == nil {
		return ""
	}
	return option.Token(strconv.FormatUint(uint64(*id), 10))
}

// resolved returns the settings as the manifest has them: templates and tokens by what they are rather than
// by their names, and defaults of options that few builds use unset.
func (b *build) resolved() (json.RawMessage, error) {
	s := b.opts.Settings
	s.Sources, s.ValSources = redacted(s.Sources), redacted(s.ValSources)
	s.TokenizerFingerprint, s.Template = b.tokenizer.Fingerprint(), b.template
	s.EOS, s.BOS = tokenOf(b.ends.eos), tokenOf(b.ends.bos)
	if s.Pack != pack.None {
		s.Overflow = example.Chunk // the policy decides, and is named where it differs
	}
	unset(&s.Pack, pack.None)
	unset(&s.Dedup, filter.None)
	unset(&s.Sample, 1)
	unset(&s.SpecialTokens, option.SpecialOfDocument)
	s.ChatTemplate, s.ToolTemplate, s.Date = "", "", ""
	if b.chat != nil {
		s.ChatTemplate, s.ToolTemplate, s.Date = b.chat.Template, b.chat.ToolTemplate, b.chat.Date
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

// redacted returns sources without the credentials of their addresses, which may differ from run to
// run.
func redacted(sources []string) []string {
	if !slices.ContainsFunc(sources, source.IsRemote) {
		return sources
	}
	out := make([]string, len(sources))
	for i, s := range sources {
		out[i] = source.Redact(s)
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
