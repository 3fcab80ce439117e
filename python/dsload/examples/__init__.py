"""Programs to run as they are, and to copy: `python -m dsload.examples.train`."""
