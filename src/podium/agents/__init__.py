"""Answers for programs that ask on behalf of people: the Model Context Protocol."""
