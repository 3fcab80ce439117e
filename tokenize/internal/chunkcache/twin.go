//go:build purego || (!amd64 && !arm64)

package chunkcache

func (c *Cache) keys(text *byte, n int, rules *[maxInline + 2]keyRule) { c.keysGo(text, n, rules) }

func (c *Cache) probe(dst []uint32, i, n int) (int, []uint32) { return c.probeGo(dst, i, n) }

func classify(w *Window, t *Tables, words int) { classifyGo(w, t, words) }
