package loader

import "github.com/dsload/dsload/shard"

// Summary is what a build made.
type Summary struct {
	Out             string         `json:"out"`
	Splits          []SplitSummary `json:"splits"`
	Documents       int64          `json:"documents"`  // read
	TextBytes       int64          `json:"text_bytes"` // UTF-8 text tokenized
	Replaced        int64          `json:"replaced"`   // ill-formed UTF-8 sequences replaced by U+FFFD
	Dropped         int64          `json:"dropped"`    // documents longer than MaxLength under Overflow "drop"
	Copies          int64          `json:"copies"`     // documents left out as copies of held-out ones
	Rejected        int64          `json:"rejected"`   // bad records skipped
	Stopped         string         `json:"stopped"`    // the budget that ended the build, or "the sources ended"
	Notes           []string       `json:"notes,omitempty"`
	Warnings        []string       `json:"warnings,omitempty"`
	AlreadyBuilt    bool           `json:"already_built,omitempty"`
	Resumed         bool           `json:"resumed,omitempty"`
	Seconds         float64        `json:"seconds"` // of this run
	MBPerSecond     float64        `json:"mb_per_s"`
	TokensPerSecond float64        `json:"tokens_per_s"`
	PeakRSSBytes    int64          `json:"peak_rss_bytes"`
	CapBytes        int64          `json:"memory_cap_bytes"`
}

// SplitSummary is one split of a Summary.
type SplitSummary struct {
	Name     string `json:"name"`
	Examples int64  `json:"examples"`
	Tokens   int64  `json:"tokens"`
	Shards   int    `json:"shards"`
}

func (s *Summary) addSplits(m *shard.Manifest) {
	for _, split := range m.Splits {
		s.Splits = append(s.Splits, SplitSummary{
			Name: split.Name, Examples: split.Examples, Tokens: split.Tokens + split.LabelTokens, Shards: len(split.Shards),
		})
	}
}

// finishedSummary tells of a dataset that an earlier run of the same build had finished.
func finishedSummary(o *Options) (*Summary, error) {
	m, err := shard.ReadManifest(o.FS, o.Out)
	if err != nil {
		return nil, err
	}
	s := &Summary{Out: o.Out, AlreadyBuilt: true, CapBytes: o.Memory, Stopped: "nothing to do, the dataset is there",
		Documents: m.Counters["documents"], TextBytes: m.Counters["text_bytes"], Replaced: m.Counters["replaced"],
		Dropped: m.Counters["dropped"], Copies: m.Counters["copies"], Rejected: m.Counters["rejected"]}
	s.addSplits(m)
	return s, nil
}
