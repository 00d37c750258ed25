"""The web pages: the cluster, pending pods, decisions and profiles of a scheduler, live."""
