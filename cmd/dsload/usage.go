package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dsload/dsload/internal/shell"
	"github.com/dsload/dsload/loader/serve"
	"github.com/dsload/dsload/shard"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Mistakes on the command line are answered with what was probably meant.

// flagError rewords an error from parsing flags.
func flagError(cmd *cobra.Command, err error) error {
	path := cmd.CommandPath()
	var unknown *pflag.NotExistError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown):
		name, typed := unknown.GetSpecifiedName(), "--"+unknown.GetSpecifiedName()
		if short := unknown.GetSpecifiedShortnames(); short != "" {
			name, typed = short, "-"+short // pflag parses "-memory" as letters
		}
		if meant := nearestFlag(cmd, name); meant != "" {
			return usagef("%s: unknown flag: %s; did you mean --%s? See '%s -h'", path, typed, meant, path)
		}
	case errors.As(err, &invalid):
		name, value, reason := invalid.GetFlag().Name, invalid.GetValue(), invalid.Unwrap().Error()
		if kind := invalid.GetFlag().Value.Type(); kind == "int" || kind == "int64" {
			reason = fmt.Sprintf("%q is not a whole number: write digits only, as in %s", value,
				invalid.GetFlag().DefValue)
			if n := strings.TrimRight(value, "kK"); n != value && isDigits(n) {
				reason = fmt.Sprintf("%q has a unit: write digits only, as in %s or %s000", value, n, n)
			}
		}
		return usagef("%s: --%s %s: %s; see '%s -h'", path, name, value, reason, path)
	}
	return usagef("%s: %v; see '%s -h'", path, err, path)
}

func isDigits(s string) bool {
	_, err := strconv.ParseUint(s, 10, 64)
	return err == nil
}

// nearestFlag returns the flag of cmd whose name is nearest to the typed one, or "".
func nearestFlag(cmd *cobra.Command, typed string) string {
	var names []string
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	return nearest(strings.ReplaceAll(strings.ToLower(typed), "_", "-"), names)
}

// nearest returns the name with the fewest changes from typed, at most one in three letters, or "".
// A name that is a prefix of typed, or begins with it, is near too.
func nearest(typed string, names []string) string {
	best, bestDistance := "", len(typed)/3+1
	for _, name := range names {
		d := distance(typed, name)
		if len(typed) >= 3 && strings.HasPrefix(name, typed) || len(name) >= 3 && strings.HasPrefix(typed, name) {
			d = min(d, 1)
		}
		if d < bestDistance || d == bestDistance && best == "" && d <= len(typed)/3 {
			best, bestDistance = name, d
		}
	}
	return best
}

// distance returns how many letters must be inserted, deleted, changed or swapped with their
// neighbour to get from a to b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
		for j := range rows[i] {
			if i == 0 {
				rows[i][j] = j
				continue
			}
			if j == 0 {
				continue
			}
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			rows[i][j] = min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}

// synonyms maps words that people try to the commands that they mean.
var synonyms = map[string]string{
	"tokenize": "build", "encode": "tokenizer encode", "decode": "tokenizer decode", "train": "tokenizer train",
	"digest": "tokenizer digest",
	"check":  "verify", "validate": "verify", "show": "inspect", "info": "inspect", "head": "inspect", "ls": "inspect",
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
	meant := nearest(strings.ToLower(typed), names)
	if synonym, ok := synonyms[strings.ToLower(typed)]; ok && meant == "" && !cmd.HasParent() {
		meant = synonym
	}
	switch info, err := os.Stat(typed); {
	case meant != "":
		return usagef("%s: there is no command %q; did you mean '%s %s'? See '%s -h'", path, typed, path, meant, path)
	case err == nil && !cmd.HasParent() && isDataset(typed):
		return usagef("%s: %s is a dataset, not a command; look into it with '%s inspect %s'", path, typed, path,
			shell.Quote(typed))
	case err == nil && !cmd.HasParent() && (info.Mode().IsRegular() || info.IsDir()):
		return usagef("%s: %s is not a command; make a dataset of it with '%s build %s'", path, typed, path,
			shell.Quote(typed))
	}
	return usagef("%s: there is no command %q; see '%s -h'", path, typed, path)
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
			err = usagef("%s: --%s: the value is empty; write one, or leave the flag out", cmd.CommandPath(), f.Name)
		case f.Name == "memory" && isSize && 0 < *size.n && *size.n < 64<<10:
			err = usagef("%s: --memory %d is %d bytes; %s", cmd.CommandPath(), *size.n, *size.n, meantMemory(*size.n))
		}
	})
	if err != nil {
		return err
	}
	if slices.Contains(args, "") {
		return usagef("%s: an argument is empty; write one, or leave it out", cmd.CommandPath())
	}
	if cmd.HasParent() && !cmd.Parent().HasParent() {
		return checkKinds(cmd, args)
	}
	return nil
}

// meantMemory returns advice for a cap without a unit: the number in MiB, if every command can work
// with that.
func meantMemory(n int64) string {
	if n<<20 < leastUsualMemory {
		return "write a unit, as in " + formatSize(leastUsualMemory)
	}
	return fmt.Sprintf("did you mean %dMiB?", n)
}

// leastUsualMemory is a cap with which every command works at its usual settings.
const leastUsualMemory = 64 << 20

// checkKinds returns an error for a dataset where sources are expected, or the reverse.
func checkKinds(cmd *cobra.Command, args []string) error {
	for _, arg := range args {
		switch cmd.Name() {
		case "build":
			if isDataset(arg) && !cmd.Flags().Changed("format") {
				q := shell.Quote(arg)
				return usagef("build %s: this is a dataset already; "+
					"look into it with 'dsload inspect %s', or serve it with 'dsload serve %s'", arg, q, q)
			}
		case "serve", "inspect", "verify", "export", "stats", "which":
			dir := serve.DatasetDir(arg)
			info, err := os.Stat(dir)
			if err != nil || !info.Mode().IsRegular() {
				continue
			}
			if parent := filepath.Dir(dir); isDataset(parent) {
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

// globEscaper turns a name into a pattern that matches only that name.
var globEscaper = strings.NewReplacer("*", "\\*", "?", "\\?", "[", "\\[", "\\", "\\\\")

// isDataset reports whether dir looks like a finished dataset.
func isDataset(dir string) bool {
	info, err := os.Lstat(filepath.Join(dir, shard.ManifestName))
	if err != nil || !info.Mode().IsRegular() {
		return false
	}
	for _, split := range []string{"train", "val"} {
		if _, err := os.Lstat(filepath.Join(dir, split+"-00000.arrow")); err == nil {
			return true
		}
		if parts, err := filepath.Glob(filepath.Join(globEscaper.Replace(dir), split+"-p*.arrow")); err == nil &&
			len(parts) > 0 {
			return true
		}
	}
	return false
}

var (
	sizeOption = regexp.MustCompile(`^--(memory|shard-bytes|max-bytes) (\d+)(MiB)?\b`)
	manyBytes  = regexp.MustCompile(`\b\d{5,} bytes\b`)
)

// inTypedUnits rewords an error about a size, with the value as it was typed and other sizes in
// units.
func inTypedUnits(message string, args []string) string {
	found := sizeOption.FindStringSubmatch(message)
	if found == nil {
		return message
	}
	typed, ok := typedValue(args, found[1])
	if !ok {
		typed = found[2] + found[3]
		if n, err := strconv.ParseInt(found[2], 10, 64); err == nil && found[3] == "" {
			typed = formatSize(n)
		}
	}
	rest := manyBytes.ReplaceAllStringFunc(message[len(found[0]):], func(s string) string {
		n, err := strconv.ParseInt(strings.TrimSuffix(s, " bytes"), 10, 64)
		if err != nil {
			return s
		}
		return formatSize(n)
	})
	return "--" + found[1] + " " + typed + rest
}

// typedValue returns what was typed for a flag. The last one counts.
func typedValue(args []string, flag string) (value string, ok bool) {
	for i, arg := range args {
		switch v, isThis := strings.CutPrefix(arg, "--"+flag+"="); {
		case arg == "--":
			return value, ok
		case isThis:
			value, ok = v, true
		case arg == "--"+flag && i+1 < len(args):
			value, ok = args[i+1], true
		}
	}
	return value, ok
}
