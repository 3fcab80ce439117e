// Package example turns documents into examples. A Formatter, shared by the workers, makes the text
// of a record: it decodes JSON and CSV, applies the template, and replaces what is not UTF-8. A
// Cutter, used by the flusher in the order of the corpus, makes examples of ids.
//
//	record -> Worker.Format -> prompt (and target) -> ids -> Cutter -> examples
//
// Ownership: a Formatter is immutable; each worker owns a Worker and the Formatted that it fills;
// what Format returns is valid until it is called again.
//
// Invariants:
//
//	I1  Format's result depends on the record and on FormatOptions alone, and is valid UTF-8.
//	I2  The text is not formatted twice: what a field holds reaches the tokenizer as it is, however
//	    much it looks like a template.
//	I3  Prompt and target together are at most 3 times the record's bytes plus Formatter.OverheadBytes.
//	I4  A built-in template's hand-written code gives what its text/template form gives.
//	I5  A template's execution ends: it visits a bounded number of nodes and makes a bounded number
//	    of bytes, both given by the record's size and the template alone. Formatter.ScratchBytes is
//	    the latter.
package example
