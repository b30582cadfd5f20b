"""Building: the virtual toolkit, host programs (tiling) and kernel units."""
