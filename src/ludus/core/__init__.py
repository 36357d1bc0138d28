"""What a game is: the contracts, and the tables that step many games at once."""
