"""The rules of v1.13 and v1.36: a package per idea, with a module per generation.

What both generations use is in `shared` of each package; they import nothing from each other.
"""
