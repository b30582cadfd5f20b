"""Buffers of the Unified Buffer: how many, how long held, where they lie, and copies within it."""
