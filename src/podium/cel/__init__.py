"""CEL expressions that select devices, with the environment of Kubernetes v1.36.

The library `cel-expr-python` parses an expression, expands its macros and checks its types
(`environment`). The checked expression is decoded (`checked_expression`) and evaluated here
(`evaluation`, `functions`), because what decides a decision differs between implementations: the
texts of errors, maps with default values, quantities, versions, and the limit of cost.
"""
