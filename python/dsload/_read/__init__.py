"""Datasets read in this process: manifests and shards, checked as a server checks them, and the batches that a server
would make."""
