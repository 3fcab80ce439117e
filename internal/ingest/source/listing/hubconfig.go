package listing

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/dsload/dsload/internal/ingest/source/cause"
	"github.com/dsload/dsload/internal/ingest/source/glob"
	"github.com/dsload/dsload/internal/remote"
	"go.yaml.in/yaml/v3"
)

// hubConfig is a configuration in the head of a README.md.
type hubConfig struct {
	Name      string    `yaml:"config_name"`
	Default   bool      `yaml:"default"`
	DataDir   string    `yaml:"data_dir"`
	DataFiles yaml.Node `yaml:"data_files"`
}

// nameConfigs lists the names of configurations.
func nameConfigs(configs []hubConfig) string {
	const most = 8
	var names []string
	for i := range configs {
		if i == most {
			names = append(names, "…")
			break
		}
		names = append(names, configs[i].Name)
	}
	return strings.Join(names, ", ")
}

// useConfig reads the files of a configuration: of its split train, or of the one that stands for
// it.
func (l *remoteListing) useConfig(c *hubConfig, repository string) error {
	w := l.walk
	w.root, w.globs = repository, nil
	splits := c.splits()
	if len(splits) == 0 { // names of files and folders show the splits
		if folder := path.Join("/", c.DataDir); folder != "/" {
			w.root += folder
		}
		return nil
	}
	at := max(0, slices.IndexFunc(splits, func(s configSplit) bool { return splitOf(s.name) == splitTrain }),
		slices.IndexFunc(splits, func(s configSplit) bool { return s.name == splitTrain }))
	read := &splits[at]
	if len(splits) > 1 {
		var left []string
		for _, s := range slices.Delete(slices.Clone(splits), at, at+1) {
			left = append(left, s.name)
		}
		slices.Sort(left)
		reason := ""
		if read.name != splitTrain {
			reason = "there is no split train; "
		}
		l.splits.note("%s: %sread the split %s; left out %s: name their files to read them", repository, reason, read.name,
			strings.Join(left, ", "))
	} else if read.name != splitTrain {
		l.splits.note("%s: there is no split train; read %s", repository, read.name)
	}
	l.splits.active = false
	l.config = fmt.Sprintf("its README.md names %s as the files of its configuration %s, and there are none",
		strings.Join(read.patterns, ", "), c.Name)
	for _, pattern := range read.patterns {
		globs, err := glob.Alternatives(strings.TrimPrefix(pattern, "./"))
		if err != nil {
			return &remote.Error{Kind: cause.Usage, Text: fmt.Sprintf("its README.md names files by %q: %v", pattern,
				err), Hint: "name the files in the address"}
		}
		w.globs = append(w.globs, globs...)
	}
	return nil
}

// A configSplit is a split of a configuration.
type configSplit struct {
	name     string
	patterns []string // globs of its files
}

// splits returns the splits that a configuration lists, in its order.
func (c *hubConfig) splits() (out []configSplit) {
	add := func(split string, n *yaml.Node) {
		list := []*yaml.Node{n}
		if n.Kind == yaml.SequenceNode {
			list = n.Content
		}
		for _, item := range list {
			if item.Kind != yaml.ScalarNode || item.Value == "" {
				continue
			}
			at := slices.IndexFunc(out, func(s configSplit) bool { return s.name == split })
			if at < 0 {
				at, out = len(out), append(out, configSplit{name: split})
			}
			out[at].patterns = append(out[at].patterns, path.Join(c.DataDir, item.Value))
		}
	}
	switch n := &c.DataFiles; n.Kind {
	case yaml.ScalarNode:
		add(splitTrain, n)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			add(n.Content[i].Value, n.Content[i+1])
		}
	case yaml.SequenceNode:
		for _, item := range n.Content {
			if item.Kind != yaml.MappingNode {
				add(splitTrain, item)
				continue
			}
			var f struct {
				Split string    `yaml:"split"`
				Path  yaml.Node `yaml:"path"`
			}
			if item.Decode(&f) == nil {
				add(cmp.Or(f.Split, splitTrain), &f.Path)
			}
		}
	}
	return out
}

// maxCard bounds how much of a README.md is looked at: its head, and of that the configurations
// alone.
const maxCard = 1 << 20

// hubConfigs reads the configurations that the README.md of a dataset lists, nil for none.
func (l *Lister) hubConfigs(ctx context.Context, repository string) ([]hubConfig, error) {
	o, err := l.Store().Describe(ctx, repository+"/README.md")
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	card := make([]byte, max(0, min(o.Size, maxCard)))
	n, err := l.Store().Head(ctx, o, card)
	if err != nil {
		return nil, err
	}
	var head struct {
		Configs []hubConfig `yaml:"configs"`
	}
	if block := configsOf(card[:n]); block == nil || yaml.Unmarshal(block, &head) != nil {
		return nil, nil // names must do
	}
	return slices.DeleteFunc(head.Configs,
		func(c hubConfig) bool { return c.DataDir == "" && len(c.splits()) == 0 }), nil
}

// configsOf cuts the member configs out of the YAML at the head of a README.md: the rest can be
// long.
func configsOf(card []byte) (block []byte) {
	lines := bytes.SplitAfter(bytes.TrimPrefix(card, []byte("\ufeff")), []byte("\n"))
	if len(lines) == 0 || string(bytes.TrimSpace(lines[0])) != "---" {
		return nil
	}
	inside := false
	for _, line := range lines[1:] {
		trimmed := bytes.TrimSpace(line)
		switch {
		case string(trimmed) == "---" || string(trimmed) == "...":
			return block
		case bytes.HasPrefix(line, []byte("configs:")):
			inside = true
		case inside && len(trimmed) > 0 && line[0] != ' ' && line[0] != '-' && line[0] != '#':
			inside = false
		}
		if inside {
			block = append(block, line...)
		}
	}
	return block
}

// chooseDataset decides how the files of a dataset of the Hub are chosen.
func (l *remoteListing) chooseDataset(ctx context.Context) error {
	repository, below, ok := remote.HubRepository(l.arg)
	if !ok || len(l.walk.filter.Include) > 0 {
		return nil
	}
	if below != "" && splitOfFolders(below+"/x") != "" {
		return nil // the split is named
	}
	l.splits = newSplitChoice()
	if below != "" && (strings.HasSuffix(l.arg, "/") || strings.Contains(below, "/")) {
		return nil // a folder
	}
	configs, err := l.hubConfigs(ctx, repository)
	if err != nil || len(configs) == 0 {
		return err
	}
	at := slices.IndexFunc(configs, func(c hubConfig) bool { return c.Name == below })
	if below == "" {
		at = max(0, slices.IndexFunc(configs, func(c hubConfig) bool { return c.Default }),
			slices.IndexFunc(configs, func(c hubConfig) bool { return c.Name == "default" }))
		if len(configs) > 1 {
			other := configs[0].Name
			if at == 0 {
				other = configs[1].Name
			}
			l.splits.note("%s: read its configuration %s of %d (%s); name another as %s/%s", repository, configs[at].Name,
				len(configs), nameConfigs(configs), repository, other)
		}
	}
	switch {
	case at >= 0:
		return l.useConfig(&configs[at], repository)
	case remote.HubOffline(l.arg):
		return nil // if the cache lacks it, the list says so
	}
	exists := errors.New("the folder holds something")
	if errors.Is(l.Store().List(ctx, l.walk.root, func(string, remote.Object) error { return exists }), exists) {
		return nil
	}
	return &remote.Error{Kind: fs.ErrNotExist, Text: "there is neither a folder nor a configuration of this name",
		Hint: "name one of the configurations " + nameConfigs(configs)}
}
