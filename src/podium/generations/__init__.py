"""What each generation of kube-scheduler has: every rule, in order."""
