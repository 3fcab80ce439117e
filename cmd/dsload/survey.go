package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source/decompress"
	"github.com/dsload/dsload/internal/ingest/survey"
	"github.com/spf13/cobra"
)

func newSurveyCommand() *cobra.Command {
	var o option.Options
	asJSON, limit := false, int64(1<<30)
	cmd := &cobra.Command{
		Use:   "survey PATH...",
		Short: "Say what each file of a folder or bucket holds, and which commands build them",
		Long: `Reads every file that the PATHs lead to, as a build would, and prints a line about each:
format, encoding, records, size, the fields with their types and the share of records
that have them, the field of the text, the shape of conversations, and below it what
is damaged or would be left out. A PATH is what a SOURCE of build is: a file, a folder, a
pattern, an address. No file ends it. It ends with the commands that build what was
found, one for each group of files that needs other flags, and with exit code 3 if a
file cannot be read whole.`,
		Example: `  dsload survey corpus/
  dsload survey s3://bucket/crawl/ --limit 16MiB            # the beginning of each file
  dsload survey 'data/**' --exclude '*.csv' --json | jq -r .commands[].command`,
		Args: someArgs("a path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o = o.WithDefaults()
			setSoftLimit(o.Memory)
			out := cmd.OutOrStdout()
			so := survey.Options{Paths: args, Include: o.Include, Exclude: o.Exclude, Limit: limit, Memory: o.Memory,
				Lines: !asJSON, Stdin: cmd.InOrStdin(), Notice: func(text string) { fmt.Fprintln(cmd.ErrOrStderr(), oneLine(text)) }}
			var writeErr error
			so.Each = func(f *survey.File) {
				notesInFlags(f.Notes, f.Problems)
				if !f.Error.IsZero() {
					inFlags(&f.Error)
				}
				if !asJSON && writeErr == nil {
					_, writeErr = io.WriteString(out, surveyed(f))
				}
			}
			r, err := survey.Run(cmd.Context(), so)
			notesInFlags(r.Notes)
			if asJSON {
				return errors.Join(json.NewEncoder(out).Encode(r), err)
			}
			return errors.Join(writeErr, writeText(out, surveyEnd(r)), err)
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	addOption(flags, &o, "include")
	addOption(flags, &o, "exclude")
	flags.Var(sizeValue{&limit, false}, "limit", "read at most this much of each file; 0 reads all of it")
	addOption(flags, &o, "memory")
	flags.BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// surveyed returns the lines about a file.
func surveyed(f *survey.File) string {
	var b strings.Builder
	b.WriteString(oneLine(f.URI+": "+strings.Join(surveyParts(f), ", ")+surveyFields(f)) + "\n")
	line := func(format string, args ...any) { b.WriteString("    " + oneLine(fmt.Sprintf(format, args...)) + "\n") }
	for _, m := range f.Members {
		line("%s: %s, %s", m.Name, m.Format, plural(m.Records, "record"))
	}
	if f.MoreMembers > 0 {
		line("and %s in more files", plural(f.MoreMembers, "record"))
	}
	if f.Bad > 0 {
		line("damaged, or to be left out: %s of %s", formatCount(f.Bad), plural(f.Records+f.Bad, "record"))
	}
	for _, problem := range f.Problems {
		line("%s", problem)
	}
	if !f.Error.IsZero() {
		line("%s", f.Error)
	}
	for _, note := range f.Notes {
		line("note: %s", note)
	}
	return b.String()
}

// surveyParts returns what a file is.
func surveyParts(f *survey.File) []string {
	format, n, size, encoding := f.Format, "", "", ""
	if f.Compression != decompress.Plain && string(f.Compression) != format {
		format += " in " + string(f.Compression)
	}
	switch {
	case f.Records > 0:
		n = plural(f.Records, "record")
	case !f.Error.IsZero():
		n = "not read"
	case f.Bad == 0 && f.Format != survey.Unfinished:
		n = "empty"
	}
	if f.Sampled {
		n += " in what was read of it"
	}
	if f.Bytes > 0 {
		size = formatSize(f.Bytes)
	}
	if f.Encoding != "" {
		encoding = "not UTF-8 but " + f.Encoding
	}
	return slices.DeleteFunc([]string{format, n, size, encoding}, func(part string) bool { return part == "" })
}

// surveyFieldsTold is how many fields of a file are named.
const surveyFieldsTold = 12

// surveyFields returns what the records of a file are made of.
func surveyFields(f *survey.File) (said string) {
	for _, shape := range slices.Sorted(maps.Keys(f.Shapes)) {
		said += fmt.Sprintf("; %s as %s", plural(f.Shapes[shape], "conversation"), shape)
	}
	switch {
	case said != "":
	case f.Prompt != "":
		said = "; pairs of " + f.Prompt + " and " + f.Target
	case f.Text != "":
		said = "; text in " + f.Text
	case len(f.Fields) > 0:
		said = "; no text found"
	}
	for i, field := range f.Fields {
		said += map[bool]string{true: "; fields: ", false: ", "}[i == 0]
		if i == surveyFieldsTold {
			return said + "…"
		}
		types := slices.SortedFunc(maps.Keys(field.Types), func(a, b string) int {
			return cmp.Or(cmp.Compare(field.Types[b], field.Types[a]), strings.Compare(a, b))
		})
		said += field.Name + " " + strings.Join(types, "/")
		if field.Records < f.Decoded {
			said += fmt.Sprintf(" %.3g%%", 100*float64(field.Records)/float64(f.Decoded))
		}
	}
	return said
}

// surveyEnd returns what was passed over, and the commands.
func surveyEnd(r *survey.Report) (said string) {
	if len(r.Files) == 0 {
		said = "there are no files to read\n"
	}
	for _, note := range r.Notes {
		said += "note: " + oneLine(note.String()) + "\n"
	}
	if r.MoreFiles > 0 {
		said += fmt.Sprintf("note: these are more than %s: for the commands survey parts of them, "+
			"folders or quoted patterns such as 'DIR/a*'\n", plural(int64(survey.MaxFiles), "file"))
	}
	for _, c := range r.Commands {
		more, damaged := map[bool]string{true: " and more"}[c.Sampled], map[bool]string{true: ", without what is damaged"}[c.Damaged]
		said += fmt.Sprintf("\nto build %s%s of %s as %s%s:\n  %s\n", plural(c.Records, "record"), more,
			plural(c.Files, "file"), c.What, damaged, c.Command)
	}
	return said
}
