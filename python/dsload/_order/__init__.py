"""The order of rows as arithmetic on numpy arrays: shuffling, dealing, mixing and packing, as in loader/serve/sampler
and loader/pack."""
