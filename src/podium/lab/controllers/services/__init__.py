"""Controllers of services: endpoints, cluster IPs and node ports."""
