"""``ascendopt-tune bench search``: this search and its peers on the same operators, one budget (docs/benchmark.md)."""
