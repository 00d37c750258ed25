"""The predicates, priorities and plugins, one package per idea, with a module per generation."""
