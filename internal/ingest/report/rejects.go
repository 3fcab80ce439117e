package report

import "encoding/json"

// MaxRejects is how many bad records rejects.jsonl names.
const MaxRejects = 100

// A Reject is a line of rejects.jsonl.
type Reject struct {
	Source string `json:"source"`
	Row    int64  `json:"row"`              // as the format counts: lines, records after the header, documents
	Offset int64  `json:"offset"`           // of the record's first byte, after decompression
	Member string `json:"member,omitempty"` // the file of an archive that it lies in
	Rows   int64  `json:"rows,omitempty"`   // that it stands for, if several
	Reason string `json:"reason"`
}

// RejectLines is the content of rejects.jsonl.
func RejectLines(rejects []Reject) ([]byte, error) {
	var out []byte
	for _, r := range rejects {
		line, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		out = append(append(out, line...), '\n')
	}
	return out, nil
}
