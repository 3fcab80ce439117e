package main

import (
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
	defer likeOption(flags, name)
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

// likeOption gives flags the groups and the words for their values of the options of their names.
func likeOption(flags *pflag.FlagSet, names ...string) {
	for _, name := range names {
		opt, _ := build.OptionNamed(name)
		inGroup(flags, string(opt.Group), name)
		if word := optionWord(opt); word != "" {
			takes(flags, word, name)
		}
	}
}

// optionWord returns what help calls the value of an option, or "" if it takes none.
func optionWord(opt build.Option) string {
	switch opt.Kind {
	case build.Switch:
		return ""
	case build.Word:
		return valueChoice
	case build.Count:
		return valueCount
	case build.Size:
		return valueSize
	case build.Share:
		return valueShare
	}
	return opt.Value
}

// optionUsage returns the help of an option, for a flag of another command that takes the same.
func optionUsage(name string) string {
	opt, _ := build.OptionNamed(name)
	return opt.HelpFor(func(name string) string { return "--" + name })
}
