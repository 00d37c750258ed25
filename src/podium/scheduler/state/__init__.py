"""The copy of the cluster that informers keep, with options, clocks and observers."""
