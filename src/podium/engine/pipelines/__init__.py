"""The two pipelines of the engine: filter rules over rows, and score rules over feasible rows."""
