"""The built-in rules: a module, or a package, per idea.

A module has the plugin with its rules, arguments, hints, texts and declaration, and then the
predicates and priorities of v1.13 of the same idea. Where an idea is large it is a package: there
`plugin` and `predicates` (or `priorities`) are modules that do not import each other, and what both
use is in `shared`.
"""
