// Package stats answers what a dataset holds and what padding and packing it would cost.
//
//	manifest -> shard -> scan -> Report -> HTML
//
// One pass over a split reads every row: it counts lengths, documents, ids and equal rows, and
// keeps the lengths of the rows that the padding figures need. Padding comes from the order that a
// server would serve (order.go), packing from the counts of lengths alone. A second pass decodes
// rows, and only those whose tokens can hold U+FFFD.
//
// Invariants:
//
//	I1  Memory does not grow with the number of rows. What had to be sampled or estimated for that
//	    says so in the Report.
//	I2  Equal datasets give equal Reports.
//	I3  A report in HTML is one file that asks for nothing and runs nothing: names and texts of others stay text.
//
// A Report belongs to its caller. Run uses one goroutine.
package stats
