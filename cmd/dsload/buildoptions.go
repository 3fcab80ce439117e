package main

import (
	"strings"

	"github.com/dsload/dsload/loader/build"
	"github.com/spf13/pflag"
)

// addRowFlags adds the flags of the options that say what rows become of sources, and with what memory and
// workers: all but those about the folder of the dataset.
func (f *buildFlags) addRowFlags(flags *pflag.FlagSet) {
	for _, opt := range build.AllOptions() {
		if opt.ChangesBytes() || opt.Group == build.GroupLimits {
			addOption(flags, &f.opts, opt.Name)
		}
	}
}

// addOption adds the flag of an option, which sets its field in o.
func addOption(flags *pflag.FlagSet, o *build.Options, name string) {
	d := build.Defaults()
	d.Workers = 0 // its help says what the default is
	opt, _ := build.OptionNamed(name)
	usage := optionUsage(name)
	switch p := opt.Field(o).(type) {
	case *string:
		flags.StringVarP(p, name, opt.Short, *opt.Field(&d).(*string), usage)
		if opt.Kind == build.Ending {
			flags.Lookup(name).NoOptDefVal = build.OwnToken
		}
	case *[]string:
		if opt.Kind == build.Names {
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
		flags.VarP(sizeValue{p, opt.Kind == build.Count}, name, opt.Short, usage)
	case *float64:
		flags.Float64VarP(p, name, opt.Short, *opt.Field(&d).(*float64), usage)
	}
}

// optionUsage returns the help of an option as pflag wants it, with the value in backquotes.
func optionUsage(name string) string {
	opt, _ := build.OptionNamed(name)
	usage := opt.HelpFor(func(name string) string { return "--" + name })
	if opt.Value != "" {
		usage = strings.Replace(usage, opt.Value, "`"+opt.Value+"`", 1)
	}
	return usage
}
