// Package stats reports what a dataset holds and what padding and packing it costs.
//
//	manifest -> shard -> scan -> Report -> HTML
//
// One pass over a split reads every row: it counts lengths, documents, ids and equal rows, and
// keeps the lengths of the rows that the padding figures need. Padding is computed from the order
// in which a server would serve rows (order.go), packing from the counts of lengths alone. A second
// pass decodes only the rows whose tokens may contain U+FFFD.
//
// Invariants:
//
//	I1  Memory does not grow with the number of rows. The Report says what was sampled or
//	    estimated for that.
//	I2  Equal datasets give equal Reports.
//	I3  A report in HTML is one file that loads nothing and runs nothing: foreign names and texts
//	    stay text.
//
// A Report belongs to its caller. Run uses one goroutine.
package stats
