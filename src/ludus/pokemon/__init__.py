"""Pokémon battles on the real Showdown simulator, which runs in Node beside each worker."""
