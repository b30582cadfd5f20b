"""The operators of cann-ops: one table per folder of theirs."""
