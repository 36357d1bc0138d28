"""What outlives a training: run folders. Knows files, not algorithms."""
