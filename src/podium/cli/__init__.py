"""The command line: wires everything together, prints, exits."""
