package main

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/dataset"
	"github.com/dsload/dsload/internal/remote"
	"github.com/dsload/dsload/internal/serve"
	"github.com/dsload/dsload/internal/shardfile"
	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/internal/spelling"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Mistakes on the command line are answered with what was probably meant.

// flagError rewords an error from parsing flags.
func flagError(cmd *cobra.Command, err error) error {
	path := cmd.CommandPath()
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name, typed := unknown.GetSpecifiedName(), "--"+unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			name, typed = short, "-"+short // pflag parses "-memory" as letters
		}
		if _, err := os.Lstat(typed); err == nil {
			return usagef("%sunknown flag: %s; write ./%s for the file; see '%s --help'", label(cmd), typed, typed, path)
		}
		if meant := nearestFlag(cmd, name); meant != "" {
			return usagef("%sunknown flag: %s; did you mean --%s? See '%s --help'", label(cmd), typed, meant, path)
		}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		name, value, reason := invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap().Error()
		switch invalid.GetFlag().Value.Type() {
		case "int", "int64":
			usual := strings.TrimPrefix(invalid.GetFlag().DefValue, "0")
			reason = fmt.Sprintf("%q is not a whole number: write digits only, as in %s", value, cmp.Or(usual, "1"))
			n := strings.TrimRight(value, "kK")
			if _, err := strconv.ParseUint(n, 10, 64); n != value && err == nil {
				reason = fmt.Sprintf("%q has a unit: write digits only, as in %s or %s000", value, n, n)
			}
		case "float64":
			reason = fmt.Sprintf("%q is not a number: write a share such as 0.1, which is 10%%", value)
		case "bool":
			reason = fmt.Sprintf("%q is neither true nor false", value)
		}
		return usagef("%s--%s %s: %s; see '%s --help'", label(cmd), name, value, reason, path)
	}
	return usagef("%s%v; see '%s --help'", label(cmd), err, path)
}

// flagSynonyms maps names that flags have in other tools to ours.
var flagSynonyms = map[string]string{
	"seq-len": "max-length", "seq-length": "max-length", "block-size": "max-length", "context-length": "max-length",
	"num-proc": "workers", "nproc": "workers", "jobs": "workers", "j": "workers", "threads": "workers",
	"append-eos": "eos", "append-eod": "eos", "add-eos": "eos", "add-bos": "bos",
	"text-column": "text-field", "text-key": "text-field", "json-key": "text-field",
	"json-keys": "text-field", "field": "text-field", "val-size": "max-val-examples", "test-size": "max-val-examples",
	"limit": "max-examples", "filter": "where", "regex": "match", "force": "overwrite",
	"dry-run": "preview", "skip-bad": "on-bad-record", "vocab": "tokenizer", "model": "tokenizer",
}

// nearestFlag returns the flag of cmd that has the typed name elsewhere, or the nearest one to it, or "".
func nearestFlag(cmd *cobra.Command, typed string) string {
	meant := flagSynonyms[strings.ReplaceAll(strings.ToLower(typed), "_", "-")]
	if meant != "" && cmd.Flags().Lookup(meant) != nil {
		return meant
	}
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return spelling.Nearest(typed, names)
}

// synonyms maps words that people try to the commands that they mean.
var synonyms = map[string]string{
	"scan": "survey", "detect": "survey", "tokenize": "build", "encode": "tokenizer encode", "decode": "tokenizer decode", "train": "tokenizer train",
	"digest": "tokenizer digest",
	"check":  "verify", "validate": "verify", "show": "view", "info": "inspect", "head": "inspect", "ls": "inspect",
	"server": "serve", "report": "stats", "convert": "export", "run": "build", "start": "serve", "benchmark": "bench",
}

// unknownCommand returns the error for a first argument that is not a command.
func unknownCommand(cmd *cobra.Command, typed string) error {
	path := cmd.CommandPath()
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	meant := spelling.Nearest(typed, names)
	if synonym, ok := synonyms[strings.ToLower(typed)]; ok && meant == "" && !cmd.HasParent() {
		meant = synonym
	}
	switch info, err := os.Stat(typed); {
	case meant != "":
		return usagef("%sthere is no command %q; did you mean '%s %s'? See '%s -h'", label(cmd), typed, path,
			meant, path)
	case err == nil && !cmd.HasParent() && dataset.IsDataset(typed):
		return usagef("%s is a dataset, not a command; look into it with '%s inspect %s'", typed, path,
			shell.Quote(typed))
	case err == nil && !cmd.HasParent() && (info.Mode().IsRegular() || info.IsDir()):
		return usagef("%s is not a command; make a dataset of it with '%s build %s'", typed, path,
			shell.Quote(typed))
	}
	return usagef("%sthere is no command %q; see '%s -h'", label(cmd), typed, path)
}

// checkUsage checks a command's arguments before it runs, for empty values (from a shell's unset
// variable), sizes without a unit, and arguments that belong to another command.
func checkUsage(cmd *cobra.Command, args []string) (err error) {
	if cmd.Hidden {
		return nil // the shell asks for completions
	}
	cmd.Flags().Visit(func(f *pflag.Flag) {
		if err != nil {
			return
		}
		empty := f.Value.Type() == "string" && f.Value.String() == ""
		if list, ok := f.Value.(pflag.SliceValue); ok {
			empty = slices.Contains(list.GetSlice(), "")
		}
		size, isSize := f.Value.(sizeValue)
		switch {
		case empty:
			err = usagef("%s--%s: the value is empty; write one, or leave the flag out", label(cmd), f.Name)
		case f.Name == "memory" && isSize && *size.n < 64<<10:
			advice := fmt.Sprintf("did you mean %dMiB?", *size.n)
			if *size.n<<20 < minUsualMemory {
				advice = "write a unit, as in " + formatSize(minUsualMemory)
			}
			err = usagef("%s--memory %d is %s; %s", label(cmd), *size.n, plural(*size.n, "byte"), advice)
		}
	})
	if err != nil {
		return err
	}
	if slices.Contains(args, "") {
		return usagef("%san argument is empty; write one, or leave it out", label(cmd))
	}
	if cmd.HasParent() && !cmd.Parent().HasParent() {
		return checkKinds(cmd, args)
	}
	return nil
}

// minUsualMemory is a cap with which every command works at its usual settings.
const minUsualMemory = 64 << 20

// checkKinds returns an error for a dataset where sources are expected, or the reverse.
func checkKinds(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		switch cmd.Name() {
		case "build":
			if dataset.IsDataset(arg) && !cmd.Flags().Changed("format") {
				q := shell.Quote(arg)
				return usagef("build %s: this is a dataset already; "+
					"look into it with 'dsload inspect %s', or serve it with 'dsload serve %s'", arg, q, q)
			}
			dir, name := filepath.Dir(arg), filepath.Base(arg)
			if (shardfile.IsShard(name) || name == shardfile.ManifestName) && dataset.IsDataset(dir) {
				return usagef("build %s: this is a file of a dataset already; look into it with 'dsload inspect %s'", arg,
					shell.Quote(dir))
			}
		case "merge":
			if err := missing(cmd.Name(), arg); err != nil {
				return err
			}
			if info, err := os.Stat(arg); err == nil && info.Mode().IsRegular() {
				return usagef("merge %s: this is a file; give the folder into which the partitions were built", arg)
			}
		case "serve", "inspect", "verify", "export", "stats", "which":
			dir := serve.DatasetDir(arg)
			info, err := os.Stat(dir)
			if cmd.Name() != "serve" { // flags of serve may make anything a source
				if err := missing(cmd.Name(), arg); err != nil {
					return err
				}
			}
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if parent := filepath.Dir(dir); dataset.IsDataset(parent) {
				return usagef("%s %s: this is a file of a dataset; give its folder: 'dsload %s %s'", cmd.Name(), arg,
					cmd.Name(), shell.Quote(parent))
			}
			if cmd.Name() == "serve" && dir == arg {
				continue // text, which is built first
			}
			return usagef("%s %s: this is a file, not a dataset; make one of it first: "+
				"'dsload build %s --out data', then 'dsload %s data'",
				cmd.Name(), arg, shell.Quote(dir), cmd.Name())
		}
	}
	return nil
}

// missing returns an error for an argument DATASET or NAME=DATASET that names nothing on this machine.
func missing(command, arg string) error {
	dir := serve.DatasetDir(arg)
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) || remote.Writable(dir) {
		return nil
	}
	return usagef("%s %s: %s", command, arg, spelling.MissingFile(dir))
}
