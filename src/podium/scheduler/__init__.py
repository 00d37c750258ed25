"""The scheduler of a cluster: the loop; its state; placing; telemetry."""
