package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// freeFlags are the flags of any command, besides the options of a build, that take more than a few words:
// names, paths, numbers, expressions. Every other flag completes to its values.
var freeFlags = []string{"http", "notify", "plan", "partition", "socket", "listen", "tls-cert", "tls-key", "token-file",
	"html", "source", "grep", "special", "query", "dataset", "mix", "text", "ids", "url", "records", "map"}

// isFree reports whether the values of a flag are not known beforehand.
func isFree(name string) bool {
	opt, ok := option.Named(name)
	return slices.Contains(freeFlags, name) || ok && opt.Kind != option.Word && len(opt.Words) == 0
}

// numberTypes are the types of flags whose values are not words.
var numberTypes = []string{"bool", "int", "int64", "uint64", "float64", "duration", "size", "count"}

// TestFlagsComplete asks for the values of every flag of every command that takes one of a few words.
func TestFlagsComplete(t *testing.T) {
	words := 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" || cmd.Name() == "help" {
			return
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if _, isSize := f.Value.(sizeValue); isSize || f.Hidden || isFree(f.Name) ||
				slices.Contains(numberTypes, f.Value.Type()) || isNumberOfFeed(f.Name) {
				return
			}
			complete, ok := cmd.GetFlagCompletionFunc(f.Name)
			if !ok {
				t.Errorf("%s --%s has no completion", cmd.CommandPath(), f.Name)
				return
			}
			if got, directive := complete(cmd, nil, ""); len(got) < 2 && directive != cobra.ShellCompDirectiveDefault {
				t.Errorf("%s --%s completes to %v", cmd.CommandPath(), f.Name, got)
			}
			words++
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newRootCommand())
	if words < 40 {
		t.Errorf("%d flags were looked at", words)
	}
}

// isNumberOfFeed reports whether a flag of which is a parameter of the feed that takes a number.
func isNumberOfFeed(name string) bool {
	for _, flag := range strings.Fields("batch-size max-tokens pad-to-multiple-of seed epochs bucket group rank world " +
		"start max-length") {
		if name == flag {
			return true
		}
	}
	return false
}
