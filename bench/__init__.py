"""Side-by-side benchmarks, run by `./samsa bench`."""
