"""Keys of the cluster; later principals, SASL steps and TLS. Pure: no step does I/O."""
