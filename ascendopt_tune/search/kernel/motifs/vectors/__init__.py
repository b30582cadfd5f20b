"""Vector instructions: fewer, longer and fused ones."""
