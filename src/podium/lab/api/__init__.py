"""The API itself: its resources and their versions, options of requests, errors as `Status`."""
