package shard

import "fmt"

// SourceCounts is what one of the manifest's sources gave to a split.
type SourceCounts struct {
	URI        string `json:"uri"`
	Documents  int64  `json:"documents"` // with rows
	Rows       int64  `json:"rows"`      // a packed row counts for each of its sources
	Tokens     int64  `json:"tokens"`    // input_ids
	LossTokens int64  `json:"loss_tokens"`
	// TextBytes and TextTokens are of the texts that were tokenized for the split, before rows were cut: without the
	// special tokens around them.
	TextBytes  int64 `json:"text_bytes"`
	TextTokens int64 `json:"text_tokens"`
}

// BytesPerToken returns the bytes of UTF-8 of a token, 0 if they are unknown.
func (c *SourceCounts) BytesPerToken() float64 {
	return float64(c.TextBytes) / float64(max(1, c.TextTokens))
}

// Add adds what the source gave elsewhere.
func (c *SourceCounts) Add(other SourceCounts) {
	c.Documents += other.Documents
	c.Rows += other.Rows
	c.Tokens += other.Tokens
	c.LossTokens += other.LossTokens
	c.TextBytes += other.TextBytes
	c.TextTokens += other.TextTokens
}

// Loss returns how many tokens of a split carry loss, and their share; nil for a dataset with a mask of a version
// that did not count them.
func (m *Manifest) Loss(s *SplitInfo) (tokens *int64, share *float64) {
	n := s.LossTokens
	switch {
	case s.Sources != nil:
	case m.Schema.Labels:
		n = s.LabelTokens
	case m.Schema.LossMask:
		return nil, nil
	default:
		n = s.Tokens
	}
	return &n, new(float64(n) / float64(s.Tokens+s.LabelTokens))
}

func (s *SplitInfo) validateSources() error {
	var sum SourceCounts
	for _, c := range s.Sources {
		if min(c.Documents, c.Rows, c.Tokens, c.LossTokens, c.TextBytes, c.TextTokens) < 0 {
			return fmt.Errorf("source %s: %+v", c.URI, c)
		}
		sum.Add(c)
	}
	if s.Sources != nil && (sum.Rows < s.Examples || sum.Tokens != s.Tokens || sum.LossTokens != s.LossTokens) {
		return fmt.Errorf("its sources have %d rows, %d tokens and %d with loss, it has %d, %d and %d", sum.Rows, sum.Tokens,
			sum.LossTokens, s.Examples, s.Tokens, s.LossTokens)
	}
	return nil
}
