package enginetest

import (
	"encoding/binary"
	"strings"
)

// Charsmap returns m as a SentencePiece character map, with a block of units for each node.
func Charsmap(m map[string]string) []byte {
	var text []byte
	units := map[uint32]uint32{}
	next := uint32(256)
	var place func(at uint32, prefix string)
	place = func(at uint32, prefix string) {
		base := next | at&0xFF
		next += 256
		units[at] |= (base^at)>>8<<10 | 1<<9
		if v, ok := m[prefix]; ok && prefix != "" {
			units[at] |= 1 << 8
			units[base] = uint32(len(text)) | 1<<31
			text = append(append(text, v...), 0)
		}
		for c := range uint32(256) {
			for k := range m {
				if c != 0 && len(k) > len(prefix) && strings.HasPrefix(k, prefix) && k[len(prefix)] == byte(c) {
					units[base^c] = c
					place(base^c, prefix+string([]byte{byte(c)}))
					break
				}
			}
		}
	}
	place(0, "")
	blob := binary.LittleEndian.AppendUint32(nil, next*4)
	for i := range next {
		blob = binary.LittleEndian.AppendUint32(blob, units[i])
	}
	return append(blob, text...)
}
