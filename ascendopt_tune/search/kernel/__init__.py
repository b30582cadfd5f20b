"""Stage II: rules that rewrite the kernel by motifs (motifs/)."""
