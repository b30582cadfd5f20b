"""Work among cores: shares, meetings and flags between them, and what a launch hands each."""
