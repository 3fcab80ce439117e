package main

import (
	"regexp"
	"slices"

	"github.com/dsload/dsload/loader/build"
)

// Packages write the name of an option in backquotes, since they do not know that it is a flag here.
var optionName = regexp.MustCompile("`([a-z]+(?:-[a-z]+)*)`")

// optionFlags are the options that messages of packages name. All are flags.
var optionFlags = []string{
	"append", "bos", "cache", "causal-pairs", "chat-template", "checkpoint-every", "columns", "dataset",
	"date", "dedup", "delimiter", "eos", "exclude", "format", "include", "match", "max-bytes",
	"max-chars", "max-examples", "max-length", "max-tokens", "max-val-examples", "memory",
	"min-chars", "no-match", "on-bad-record", "out", "overflow", "overwrite", "pack", "sample",
	"shard-bytes", "special-tokens", "template", "text-field", "tokenizer", "tokenizer-pattern",
	"train-on", "val", "where", "workers",
}

// flagNames writes the options in a package's message as flags: `memory` becomes --memory.
func flagNames(text string) string {
	return optionName.ReplaceAllStringFunc(text, func(quoted string) string {
		if name := quoted[1 : len(quoted)-1]; slices.Contains(optionFlags, name) {
			return "--" + name
		}
		return quoted
	})
}

// summaryForPeople writes the options in a build's summary as flags.
func summaryForPeople(s *build.Summary) {
	s.Stopped = flagNames(s.Stopped)
	for _, list := range [][]string{s.Notes, s.Warnings} {
		for i := range list {
			list[i] = flagNames(list[i])
		}
	}
}
