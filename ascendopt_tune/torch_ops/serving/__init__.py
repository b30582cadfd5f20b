"""From a call of an operator to a launch of its best pair: dispatch, launchers, guards, samples, warm-up."""
