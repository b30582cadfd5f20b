"""Copies between global memory and the Unified Buffer, and single elements that should be copies or should not."""
