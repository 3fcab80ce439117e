package jsonscan

import "slices"

// AppendString appends a JSON string. Bytes that are not UTF-8 stay as they are.
func AppendString(dst, s []byte) []byte {
	return append(AppendEscaped(append(dst, '"'), s), '"')
}

// AppendEscaped appends what stands between the quotes of a JSON string. Parts of a text may be appended one
// after another.
func AppendEscaped(dst, s []byte) []byte {
	const hexDigits = "0123456789abcdef"
	from := 0
	dst = slices.Grow(dst, len(s)) // a long text at once: the steps of append would leave several times its length
	for i, b := range s {
		if b >= ' ' && b != '"' && b != '\\' {
			continue
		}
		dst = append(dst, s[from:i]...)
		from = i + 1
		switch b {
		case '"', '\\':
			dst = append(dst, '\\', b)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[b>>4], hexDigits[b&0xf])
		}
	}
	return append(dst, s[from:]...)
}
