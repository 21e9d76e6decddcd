"""What the integration tests share: processes that always end, and clients for them."""
