"""What is read from a kernel before anything is rewritten: syntax trees, calls, loops, names. Changes nothing."""
