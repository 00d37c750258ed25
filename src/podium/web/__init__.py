"""The pages: what the scheduler sees and thinks, live in a browser."""
