"""The OpenAPI documents that clients download."""
