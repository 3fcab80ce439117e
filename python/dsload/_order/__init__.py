"""The order of rows as arithmetic on numpy arrays: shuffling, dealing, mixing and packing, as in internal/serve/sampler
and internal/pack."""
