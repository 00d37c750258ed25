"""The commands: parse flags, call the library or the host, print, exit."""
