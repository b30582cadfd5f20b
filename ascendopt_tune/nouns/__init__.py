"""What everything else speaks of: operators, cases, pairs and trials, outcomes and profiles, chips and their clocks.

It depends on files alone.
"""
