"""Controllers that create pods: replica sets, deployments, stateful sets, daemon sets and jobs."""
