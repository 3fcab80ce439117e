"""dsload."""
