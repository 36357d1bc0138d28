"""Console games in an emulator (stable-retro): many games in one emulator by save-state swap."""
