package main

import (
	"github.com/dsload/dsload/loader/build"
	"github.com/spf13/pflag"
)

// addShapeFlags adds the flags that choose which documents to keep.
func (f *buildFlags) addShapeFlags(flags *pflag.FlagSet) {
	o := &f.opts
	flags.StringArrayVar(&o.Filter.Where, "where", nil,
		"keep records whose field has this value, as in `FIELD=VALUE`; "+
			"several values of a field are alternatives (repeatable)")
	flags.StringArrayVar(&o.Filter.Match, "match", nil,
		"keep documents in which this regular expression `RE` matches (RE2 syntax; repeatable: all must match)")
	flags.StringArrayVar(&o.Filter.NoMatch, "no-match", nil,
		"drop documents in which this regular expression `RE` matches (repeatable: any)")
	flags.Var(sizeValue{&o.Filter.MinChars, true}, "min-chars", "drop documents with fewer characters")
	flags.Var(sizeValue{&o.Filter.MaxChars, true}, "max-chars",
		"drop documents with more characters, 0 for no limit")
	flags.Float64Var(&o.Filter.Sample, "sample", 1,
		"keep this share of the documents, chosen by content hash, such as 0.1")
	flags.StringVar((*string)(&o.Dedup), "dedup", string(build.Defaults().Dedup),
		"drop copies of earlier documents: none, exact, or near for nearly the same words")
}
