"""Cases and formulas of others' cube and mixed operators (test_operator_units.py)."""
