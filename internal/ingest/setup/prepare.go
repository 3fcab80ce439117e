package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/command"
	"github.com/dsload/dsload/internal/ingest/example"
	"github.com/dsload/dsload/internal/spelling"
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
			"there are no targets; give a {template} that defines \"prompt\" and \"target\"")
	}
	for _, phase := range p.Phases {
		if phase.Formatter.HasTarget() != hasTarget {
			return fault.BadOption("val", nil,
				"its records make targets and the sources' do not, or the other way round; "+
					"give both the same {format} and {template}")
		}
	}
	return p.checkPackable()
}

// HasTarget reports whether records make a prompt and a target.
func (p *Prepared) HasTarget() bool { return p.Phases[0].Formatter.HasTarget() }

// readTemplate sets the template to its built-in name, or to the content of its file: the settings
// of a build keep the text, not its path.
func (p *Prepared) readTemplate(context.Context) error {
	name := p.Options.Template
	if p.Template = name; name == "" || example.IsBuiltin(name) {
		return nil
	}
	info, err := os.Stat(name)
	if err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			err = path.Err
		}
		reason := fmt.Sprintf("is not a built-in template (%s) and cannot be read: %v",
			strings.Join(example.Builtins(), ", "), err)
		if strings.Contains(name, "{{") {
			reason += "; it looks like the text of a template: write that into a file, and name the file"
		} else if near := spelling.Nearest(name, example.Builtins()); near != "" {
			reason += "; did you mean " + near + "?"
		} else if near := spelling.NearestFile(name); near != "" {
			reason += "; did you mean " + near + "?"
		}
		return fault.BadOption("template", name, "%v", reason)
	}
	switch {
	case !info.Mode().IsRegular():
		return fault.BadOption("template", name, "is not a file; give a text file, or the name of a built-in template")
	case info.Size() == 0:
		return fault.BadOption("template", name, "the file is empty; write a template into it")
	case info.Size() > example.MaxTemplateBytes:
		return fault.BadOption("template", name,
			"%d bytes are too long for a template, which may have %d", info.Size(),
			example.MaxTemplateBytes)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return fault.BadOption("template", name, "%v", err)
	}
	p.Template = string(data)
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
