"""What is in a dataset: the figures of `dsload stats` as plain values, and as charts."""
