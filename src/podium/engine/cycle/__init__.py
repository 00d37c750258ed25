"""One scheduling cycle: filter, score, select, reserve; or preempt."""
