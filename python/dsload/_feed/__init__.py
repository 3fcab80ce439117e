"""A dsload server and what it sends: the process, HTTP, Arrow messages, and streams that survive a lost connection."""
