"""Recordings: decisions of kube-scheduler in files, compared with Podium's."""
