"""What people look at. Reads games and runs; nothing else waits for it."""
