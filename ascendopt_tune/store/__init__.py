"""What is kept on disk: cached results, bundles and archives of them, whom to trust, claims, scratch space."""
