"""Keys of the cluster; later principals, SASL steps and TLS. Pure: no I/O in any step."""
