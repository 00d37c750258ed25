"""The protobuf encoding of the API, `application/vnd.kubernetes.protobuf`."""
