"""Waiting on one core: barriers and flags between its pipes."""
