"""Controllers for devices: claims made from templates and released, and a driver of devices."""
