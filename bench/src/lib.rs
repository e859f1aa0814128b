//! Benchmarks of Aerostat; see `bench/README.md`.
