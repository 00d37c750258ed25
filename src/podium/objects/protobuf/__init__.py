"""The binary form of the API, `application/vnd.kubernetes.protobuf`."""
