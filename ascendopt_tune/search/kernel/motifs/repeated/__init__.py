"""What every turn of a loop does again though it stays the same, kept or asked for early."""
