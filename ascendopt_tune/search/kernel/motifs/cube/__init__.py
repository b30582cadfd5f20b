"""Cube cores: loads, tiles, packets and flags of products."""
