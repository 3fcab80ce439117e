package main

import (
	"strings"

	"github.com/dsload/dsload/loader"
	"github.com/dsload/dsload/loader/build"
	"github.com/dsload/dsload/loader/build/example"
	"github.com/dsload/dsload/loader/build/example/chat"
	"github.com/dsload/dsload/loader/build/shape"
	"github.com/dsload/dsload/loader/build/source"
	"github.com/dsload/dsload/loader/pack"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choices lists the values of flags that take one of a few words, in any command. files is set if
// the value may be a file.
func choices() map[string]struct {
	words []string
	files bool
} {
	type choice = struct {
		words []string
		files bool
	}
	return map[string]choice{
		"format":         {words(source.Formats()), false},
		"overflow":       {words(example.Overflows), false},
		"pack":           {words(pack.Policies), false},
		"special-tokens": {words([]build.SpecialTokens{build.SpecialOfDocument, build.SpecialOfChunk}), false},
		"train-on":       {words(chat.TrainOns), false},
		"chat-template":  {nil, true},
		"on-bad-record":  {words(build.BadRecordPolicies), false},
		"dedup":          {words(shape.Dedups), false},
		"progress":       {progressModes, false},
		"log-level":      {logLevels, false},
		"documents":      {documentRuns, false},
		"tokenizer":      {loader.BuiltinTokenizers(), true},
		"template":       {example.Builtins(), true},
	}
}

// words returns the values of an option as strings.
func words[T ~string](values []T) (out []string) {
	for _, v := range values {
		out = append(out, string(v))
	}
	return out
}

// orList joins words as help lists them.
func orList(words []string) string {
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// completes makes a flag of cmd complete to words.
func completes(cmd *cobra.Command, flag string, words []string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(words,
		cobra.ShellCompDirectiveNoFileComp)) // fails only for unknown or registered names
}

// registerCompletions registers the choices for the flags of cmd and its subcommands. A command
// that registered its own completion keeps it.
func registerCompletions(cmd *cobra.Command) {
	known := choices()
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		choice, ok := known[f.Name]
		if _, taken := cmd.GetFlagCompletionFunc(f.Name); !ok || taken {
			return
		}
		if !choice.files {
			completes(cmd, f.Name, choice.words)
			return
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, cobra.FixedCompletions(choice.words,
			cobra.ShellCompDirectiveDefault)) // likewise
	})
	for _, sub := range cmd.Commands() {
		registerCompletions(sub)
	}
}
