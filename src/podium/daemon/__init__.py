"""The scheduler of a cluster: watch, decide, bind; with its metrics, logs and decision log."""
