"""The arguments of plugins: fields, defaults and checks, a module per idea as in `engine/rules`."""
