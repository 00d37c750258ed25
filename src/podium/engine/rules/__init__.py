"""The built-in rules: a package, or a module, per idea.

`predicates` and `priorities` are the form of v1.13. `plugin` is that of the releases with plugins:
rule, arguments, hints, texts and declaration. What both use is in `shared`. Neither form imports
the other.
"""
