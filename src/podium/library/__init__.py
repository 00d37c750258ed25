"""The functions behind `import podium` and the commands: read, simulate, replay, snapshot."""
