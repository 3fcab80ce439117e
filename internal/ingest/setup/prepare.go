package setup

import (
	"context"
	"errors"
	"syscall"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/command"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/pack"
	"github.com/dsload/dsload/internal/tokenizers"
)

func (p *Prepared) openTokenizer(ctx context.Context) (err error) {
	o := p.Options
	if p.Tokenizer = o.LoadedTokenizer; p.Tokenizer == nil {
		p.Tokenizer, err = tokenizers.Open(o.Tokenizer,
			tokenizers.Options{Pattern: o.TokenizerPattern, Memory: o.Memory,
				Done: ctx.Done(), Notice: func(text string) { p.Options.Noticef("%s", text) }})
	}
	return err
}

func (p *Prepared) openCutter(context.Context) (err error) {
	o := p.Options
	if p.Ends, err = findEnds(o, p.Tokenizer); err != nil {
		return err
	}
	p.Cutter, err = example.NewCutter(p.CutterOptions())
	var length *example.LengthError
	if errors.As(err, &length) {
		return fault.BadOption("max-length", o.MaxLength,
			"the special tokens of %s alone take %d; write at least %d", p.Tokenizer.Name(),
			length.Special, length.Special+1)
	}
	return err
}

func (p *Prepared) checkOut(context.Context) error {
	info, err := p.Options.FS.Stat(p.Options.Out)
	switch {
	case err == nil && !info.IsDir():
		return fault.BadOption("out", p.Options.Out, "it is a file, and a dataset is a folder; name another one")
	case errors.Is(err, syscall.ENOTDIR):
		return fault.BadOption("out", p.Options.Out, "it would lie in a file, not in a folder; name another one")
	}
	return nil
}

// checkTargets returns an error unless the records of all phases make targets, or none do.
func (p *Prepared) checkTargets(context.Context) error {
	hasTarget := p.HasTarget()
	if p.Options.CausalPairs && !hasTarget {
		return fault.BadOption("causal-pairs", nil,
			"there are no targets; give a {prompt} and a {target}, or a {template} with the blocks prompt and target")
	}
	for _, phase := range p.Phases {
		if phase.Formatter.HasTarget() != hasTarget {
			return fault.BadOption("val", nil,
				"its records make targets and the sources' do not, or the other way round; "+
					"give both the same {format}")
		}
	}
	if p.Options.Pack != pack.None && hasTarget && !p.Options.CausalPairs {
		return fault.BadOption("pack", string(p.Options.Pack),
			"prompts with targets in a column of their own cannot share rows; "+
				"put both into one row with {causal-pairs}, or leave {pack} out")
	}
	return nil
}

// HasTarget reports whether records make a prompt and a target.
func (p *Prepared) HasTarget() bool { return p.Phases[0].Formatter.HasTarget() }

// readTemplates sets the templates to what the options name.
func (p *Prepared) readTemplates(context.Context) (err error) {
	o, t := p.Options, &p.Templates
	for _, read := range []struct {
		option fault.Option
		given  string
		into   *string
	}{{"template", o.Template, &t.Text}, {"prompt", o.Prompt, &t.Prompt}, {"target", o.Target, &t.Target}} {
		if *read.into = read.given; o.Inherits(string(read.option)) {
			continue
		}
		if *read.into, err = example.ReadTemplate(read.option, read.given); err != nil {
			return err
		}
	}
	return nil
}

// checkMap returns an error for a command that cannot be run.
func (p *Prepared) checkMap(context.Context) error {
	if p.Options.Map == "" {
		return nil
	}
	if err := command.Find(p.Options.Map); err != nil {
		return fault.BadOption("map", p.Options.Map, "%v; give a command that sh can run, "+
			"which answers each line of its standard input with a line", err)
	}
	return nil
}
