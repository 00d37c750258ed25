"""The extender protocol in both directions: asking extenders, and being one."""
