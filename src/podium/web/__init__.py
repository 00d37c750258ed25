"""The pages: what a scheduler sees and why it decides, live in a browser."""
