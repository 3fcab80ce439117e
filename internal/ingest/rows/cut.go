package rows

import "github.com/dsload/dsload/internal/dataset"

// Cut shortens a row to its first n tokens.
func Cut(row *dataset.Example, n int64) {
	if len(row.Parts) == 0 {
		row.InputIDs = row.InputIDs[:n]
	} else {
		cutParts(row, int(n))
	}
	if row.LossMask != nil {
		row.LossMask = row.LossMask[:n]
	}
	for i, length := range row.Segments {
		if n <= int64(length) {
			row.Segments[i] = int32(n)
			row.Segments = row.Segments[:i+1]
			return
		}
		n -= int64(length)
	}
}

// cutParts shortens the parts of a row to n tokens.
func cutParts(row *dataset.Example, n int) {
	left := 0 // bytes
	for _, part := range row.Parts {
		left += len(part)
	}
	left = left / row.Length * n
	for i, part := range row.Parts {
		if left <= len(part) {
			row.Parts, row.Parts[i] = row.Parts[:i+1], part[:left]
			break
		}
		left -= len(part)
	}
	row.Length = n
}
