"""How true modelled times are: own kernels that do what published measurements were made of, compared row by row."""
