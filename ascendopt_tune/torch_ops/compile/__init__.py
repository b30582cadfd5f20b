"""Graphs: the pass that binds tuned pairs, the backend, operators inside of graphs."""
