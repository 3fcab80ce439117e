package main

import (
	"fmt"
	"strconv"

	"github.com/dsload/dsload/internal/help"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/spf13/pflag"
)

// addRowFlags adds the flags of all options except those about the dataset's folder: how sources become rows, and
// the memory and workers for that.
func (f *buildFlags) addRowFlags(flags *pflag.FlagSet) {
	for _, opt := range option.All() {
		if opt.ChangesBytes() || opt.Group == option.GroupLimits {
			addOption(flags, &f.opts, opt.Name)
		}
	}
}

// givenOptions returns the flags of options that were given, as arguments.
func givenOptions(flags *pflag.FlagSet) (args []string) {
	flags.VisitAll(func(f *pflag.Flag) { // Visit knows only what this set parsed
		if _, ok := option.Named(f.Name); !ok || !f.Changed {
			return
		}
		values := []string{f.Value.String()}
		switch v := f.Value.(type) {
		case sizeValue:
			values[0] = strconv.FormatInt(*v.n, 10)
		case pflag.SliceValue:
			if values = v.GetSlice(); f.Value.Type() == "stringSlice" { // cut at commas
				list := f.Value.String() // in brackets
				values = []string{list[1 : len(list)-1]}
			}
		}
		for _, value := range values {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	return args
}

// addOption adds the flag of an option, which sets its field in o.
func addOption(flags *pflag.FlagSet, o *option.Options, name string) {
	d := option.Defaults()
	d.Workers = 0 // its help says what the default is
	opt, _ := option.Named(name)
	usage := optionUsage(name)
	defer likeOption(flags, name)
	switch p := opt.Field(o).(type) {
	case *string:
		if *p = *opt.Field(&d).(*string); opt.Kind == option.Text && opt.Group != option.GroupOutput {
			flags.VarP(&onceValue{p: p}, name, opt.Short, usage)
			break
		}
		flags.StringVarP(p, name, opt.Short, *p, usage)
		if opt.Kind == option.Ending {
			flags.Lookup(name).NoOptDefVal = option.OwnToken
		}
	case *[]string:
		if opt.Kind == option.Names {
			flags.StringSliceVarP(p, name, opt.Short, nil, usage)
		} else {
			flags.StringArrayVarP(p, name, opt.Short, nil, usage)
		}
	case *bool:
		flags.BoolVarP(p, name, opt.Short, false, usage)
	case *int:
		flags.IntVarP(p, name, opt.Short, *opt.Field(&d).(*int), usage)
	case *int64:
		*p = *opt.Field(&d).(*int64) // what sizeValue shows
		flags.VarP(sizeValue{p, opt.Kind == option.Count}, name, opt.Short, usage)
	case *float64:
		flags.Float64VarP(p, name, opt.Short, *opt.Field(&d).(*float64), usage)
	}
}

// onceValue is a flag that says what the text of documents is, so that a second value, which others let take the
// place of the first, was meant besides it.
type onceValue struct {
	p     *string
	given bool
}

func (v *onceValue) String() string {
	if v.p == nil {
		return ""
	}
	return *v.p
}

func (*onceValue) Type() string { return "string" }

func (v *onceValue) Set(s string) error {
	if v.given && s != *v.p {
		return fmt.Errorf("it was given before, as %q, and takes one value", *v.p)
	}
	*v.p, v.given = s, true
	return nil
}

// likeOption gives flags the groups and value words of the options with the same names.
func likeOption(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		opt, _ := option.Named(name)
		help.InGroup(flags, string(opt.Group), name)
		if word := optionWord(opt); word != "" {
			help.NameValues(flags, word, name)
		}
	}
}

// optionWord returns what help calls the value of an option, or "" if it takes none.
func optionWord(opt option.Row) string {
	words := map[option.Kind]string{option.Switch: "", option.Word: help.ValueChoice, option.Count: help.ValueCount,
		option.Size: help.ValueSize, option.Share: help.ValueShare}
	if word, ok := words[opt.Kind]; ok {
		return word
	}
	return opt.Value
}

// optionUsage returns the help of an option, for a flag of another command that takes the same.
func optionUsage(name string) string {
	opt, _ := option.Named(name)
	return opt.HelpFor(func(name string) string { return "--" + name })
}
