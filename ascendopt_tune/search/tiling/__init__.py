"""Stage I: the tiling program's sites, and the rules that change them."""
