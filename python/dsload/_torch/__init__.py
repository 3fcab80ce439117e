"""What torch changes: the class that DataLoader looks for, ranks, workers, and wrappers around a loader."""
