"""Benchmarks of speed: each compares ways of doing one thing in one run, on the machine at hand."""
