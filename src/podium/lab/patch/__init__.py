"""The four kinds of patches, server-side apply among them."""
