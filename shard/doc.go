// Package shard reads a dataset on disk: Arrow IPC shards, and the manifest that makes them a dataset. FORMAT.md is
// the normative description of every byte.
//
//	Dataset: manifest.json -> Split -> row by position
//
// Reading rows takes a dataset, a split and numbers:
//
//	d, err := shard.Open("data")
//	train, err := d.Split("train")
//	err = train.ReadRow(0, &row)
//	for row, err := range train.Rows(0, train.NumRows()) { … }
//
// A Dataset and its Splits are safe for concurrent use.
//
// Invariants:
//
//	I1  Readers trust the manifest only. It is written last, atomically; without it there is no dataset.
//	I2  A reader accepts exactly the bytes that a writer makes for the same counts. It compares
//	    metadata with what they must be and does not parse them, so a forged header is an error,
//	    never a length to allocate or an offset to read.
package shard
