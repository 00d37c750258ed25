"""Long lists in the binary form of the API, `application/vnd.kubernetes.protobuf`."""
