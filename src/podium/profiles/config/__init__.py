"""A KubeSchedulerConfiguration (v1.36) becomes profiles of the engine."""
