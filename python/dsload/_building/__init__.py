"""`dsload build` run from Python: its arguments, items of an iterator as its input, and its progress."""
