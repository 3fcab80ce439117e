// Package shardfile knows the files of a dataset: their names and what each is to a build, the seal of those that
// are JSON, the file system and its lock, and where the columns of a record batch lie in a shard. Package shard
// reads datasets with it, and internal/dataset writes them. FORMAT.md of package shard describes every byte.
package shardfile
