"""The benchmarks Beholder knows by name."""

from __future__ import annotations

from beholder.benchmarks.apa import APA
from beholder.benchmarks.benchmark import Benchmark
from beholder.benchmarks.disparity import DISPARITY
from beholder.benchmarks.gras import GRAS
from beholder.benchmarks.perception import PERCEPTION
from beholder.benchmarks.pfi import PFI
from beholder.catalog import Catalog

BENCHMARKS: Catalog[Benchmark] = Catalog(
    "benchmark", {benchmark.name: benchmark for benchmark in (APA, PFI, GRAS, PERCEPTION, DISPARITY)}
)
