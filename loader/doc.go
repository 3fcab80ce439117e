// Package loader holds what dsload's two paths share. Each path is a separate package.
//
//	build:  source -> example -> tokenize -> shard -> manifest
//	serve:  manifest -> shard -> sampler -> collate -> feed
//
// They share the opening of tokenizers, the error of an invalid option, and the memory limits of a
// process.
package loader
