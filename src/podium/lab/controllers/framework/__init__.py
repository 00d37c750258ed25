"""What every controller is built from: a work queue, a clock, a cache of objects and their pods."""
