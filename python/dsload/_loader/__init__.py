"""Loader: what its arguments name, where its batches come from, its epochs, columns and states."""
