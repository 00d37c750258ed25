"""Read, simulate, explain, record, replay, snapshot: the functions behind `import podium`."""
