package setup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/dsload/dsload/internal/fault"
	"github.com/dsload/dsload/internal/ingest/earlier"
	"github.com/dsload/dsload/internal/ingest/option"
	"github.com/dsload/dsload/internal/ingest/source"
	"github.com/dsload/dsload/internal/ingest/source/checksum"
	"github.com/dsload/dsload/shard"
	"github.com/zeebo/xxh3"
)

// Identity is what a dataset would be made from, without building it.
type Identity struct {
	// Settings is a digest of everything that determines the rows except the content of the
	// sources.
	Settings string
	// Content is a digest of the names, sizes, times and tags of all sources as they are now.
	Content string
	// Options are those of the build, with what was loaded to find this out.
	Options option.Options

	known []source.Stat // all sources
}

// Identify looks at the sources and settings of a build. Local sources are named by their whole
// paths from here on. A source that cannot be recognized when it is read again, such as standard
// input, is an error.
func Identify(ctx context.Context, o option.Options) (_ *Identity, err error) {
	o = o.WithDefaults()
	for _, list := range []*[]string{&o.Sources, &o.ValSources} {
		whole := make([]string, len(*list))
		for i, s := range *list {
			if s == "-" {
				return nil, fault.BadOption("source", s,
					"standard input cannot be read again, so it cannot be cached; build it into a folder")
			}
			if whole[i] = s; !strings.Contains(s, "://") {
				abs, err := filepath.Abs(s)
				if err != nil {
					return nil, err
				}
				whole[i] = abs
			}
		}
		*list = whole
	}
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Map != "" {
		return nil, fault.BadOption("map", o.Map,
			"a change of what it runs would not be seen, so its answers cannot be cached; build them into a folder")
	}
	p, err := Open(ctx, &o, Reading{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	settings, err := p.Settings()
	if err != nil {
		return nil, err
	}
	known := p.Known()
	for i := range known {
		if !earlier.Rereadable(&known[i]) && known[i].ETag == "" {
			return nil, fault.BadOption("source", known[i].URI,
				"it has neither a time nor a tag, so a change of it would not be seen; build it into a folder")
		}
	}
	h := xxh3.New()
	for _, in := range known {
		fmt.Fprintf(h, "%q %d %s %q\n", in.URI, in.Size, earlier.TimeOf(&in), in.ETag) // never fails
	}
	o.LoadedTokenizer = p.Tokenizer
	return &Identity{digestSettings(settings), checksum.Of(h).String(), o, known}, nil
}

func digestSettings(settings json.RawMessage) string {
	h := xxh3.New()
	fmt.Fprintf(h, "%d %d %s", shard.FormatVersion, source.DetectionRules, settings) // never fails
	return checksum.Of(h).String()
}

// CheckSettings returns an error if a dataset was made with other settings, which name the sources too.
func (id *Identity) CheckSettings(settings json.RawMessage) error {
	if digestSettings(settings) != id.Settings {
		return errors.New("it was made from other sources, or with other settings, than its name says")
	}
	return nil
}

// CheckFinished returns an error if a finished dataset was made with other settings, or from sources of
// other names, sizes or tags.
func (id *Identity) CheckFinished(m *shard.Manifest) error {
	if err := id.CheckSettings(m.Settings); err != nil {
		return err
	}
	if len(m.Sources) != len(id.known) {
		return fmt.Errorf("it was made from %d sources, and these are %d", len(m.Sources), len(id.known))
	}
	for i := range id.known {
		is, was := &id.known[i], &m.Sources[i]
		if is.URI != was.URI || is.Size != was.Bytes || is.ETag != "" && was.ETag != "" && is.ETag != was.ETag {
			return fmt.Errorf("it was made from %s of %d bytes, which is now %s of %d", was.URI, was.Bytes, is.URI,
				is.Size)
		}
	}
	return nil
}
