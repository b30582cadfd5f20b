"""Results on their way to other machines: bundles, trust, import, prebuild, and the upkeep of a cache folder."""
