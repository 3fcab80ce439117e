package main

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/serve/feed"
	"github.com/spf13/pflag"
)

// pythonOptions is the module of Python's package with the types of a build's options.
const pythonOptions = "../../python/dsload/_options.py"

const pythonHead = `"""The options of a build, from the program's own table.

They are flags of "dsload build": True is a flag without a value, a list is a repeated flag; None and False are ignored,
but for eos and bos, of which False means off.
Written by: go test ./cmd/dsload -run TestPythonOptions -update
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, Optional, TypedDict, Union

PathLike = Union[str, "os.PathLike[str]"]
`

// loaderOptions are the options of a build besides those that change bytes that a Loader of text takes.
var loaderOptions = []string{"checkpoint-every", "workers", "http", "notify"}

// ofLoader reports whether an option has the name of a Loader's own parameter.
func ofLoader(name string) bool {
	return name == "columns" || slices.ContainsFunc(feed.Parameters(), func(p feed.Parameter) bool {
		return p.Name == pythonName(name)
	})
}

// pythonClasses are the types of the options that functions of the package take.
var pythonClasses = []struct {
	name, base, doc string
	has             func(name string, changesBytes bool) bool
}{
	{"TextOptions", "TypedDict, total=False", "What makes rows of sources, except what is a parameter of Loader too.",
		func(name string, changesBytes bool) bool { return changesBytes && !ofLoader(name) }},
	{"LoaderOptions", "TextOptions, total=False", "The options of a Loader of text, besides its own parameters.",
		func(name string, _ bool) bool { return slices.Contains(loaderOptions, name) }},
	{"PlanOptions", "TextOptions, total=False", "The options of dsload.ray.build.",
		func(name string, changesBytes bool) bool {
			return changesBytes && ofLoader(name) || name == "checkpoint-every"
		}},
	{"BuildOptions", "PlanOptions, total=False", "The options of dsload.build.",
		func(name string, changesBytes bool) bool { return !changesBytes && name != "checkpoint-every" }},
}

// notInPython are the flags of build that are not options there: dsload.build has parameters instead, or
// none.
var notInPython = []string{"out", "progress", "json", "explain-memory", "preview", "exit-with-stdin", "cpu-profile",
	"discarded", "help", "map"}

// TestPythonOptions holds Python's types of options to the flags of build.
func TestPythonOptions(t *testing.T) {
	var b, help strings.Builder
	b.WriteString(pythonHead)
	for _, class := range pythonClasses {
		var types strings.Builder
		newBuildCommand().Flags().VisitAll(func(flag *pflag.Flag) {
			opt, _ := option.Named(flag.Name)
			changesBytes := opt.Name != "" && opt.ChangesBytes()
			if slices.Contains(notInPython, flag.Name) {
				return
			}
			if class.name == "BuildOptions" { // it has all of them, and help(BuildOptions) shows no other class
				fmt.Fprintf(&help, "        %s: %s.\n", pythonName(flag.Name), pythonHelp(flag))
			}
			if class.has(flag.Name, changesBytes) {
				fmt.Fprintf(&types, "    %s: %s\n", pythonName(flag.Name), pythonType(flag, opt))
			}
		})
		doc := class.doc
		if help.Len() > 0 {
			doc += "\n\n    Options:\n" + help.String() + "    "
		}
		fmt.Fprintf(&b, "\n\nclass %s(%s):\n    \"\"\"%s\"\"\"\n\n%s", class.name, class.base, doc, types.String())
	}
	if *update {
		if err := os.WriteFile(pythonOptions, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if have, err := os.ReadFile(pythonOptions); err != nil || string(have) != b.String() {
		t.Errorf("%s does not have the flags of build (%v); run this test with -update", pythonOptions, err)
	}
}

func pythonName(flag string) string { return strings.ReplaceAll(flag, "-", "_") }

var flagInHelp = regexp.MustCompile(`--[a-z-]+`)

// pythonHelp returns the help of a flag with names of flags as Python's.
func pythonHelp(flag *pflag.Flag) string {
	_, usage := pflag.UnquoteUsage(flag)
	return flagInHelp.ReplaceAllStringFunc(usage, func(name string) string { return pythonName(name[len("--"):]) })
}

// pythonType returns the type of an option of build, or of a flag that is none.
func pythonType(flag *pflag.Flag, opt option.Row) string {
	text := "str"
	if opt.Files || flag.Name == "plan" {
		text = "PathLike"
	}
	switch {
	case opt.Kind == option.Word:
		quoted := make([]string, 0, len(opt.Words))
		for _, word := range slices.Concat(opt.Words, opt.Aliases) {
			quoted = append(quoted, fmt.Sprintf("%q", word))
		}
		return "Optional[Literal[" + strings.Join(quoted, ", ") + "]]"
	case opt.Kind == option.Ending:
		return "Union[str, int, bool, None]"
	case opt.Kind == option.Size:
		return "Union[int, str, None]"
	case opt.Kind == option.Share:
		return "Optional[float]"
	case opt.Kind == option.Count:
		return "Optional[int]"
	case flag.Value.Type() == "bool":
		return "Optional[bool]"
	case flag.Value.Type() == "string":
		return "Optional[" + text + "]"
	}
	return "Union[" + text + ", Sequence[" + text + "], None]"
}
