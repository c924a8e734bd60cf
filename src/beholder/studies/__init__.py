"""The benchmarks Beholder knows by name."""

from __future__ import annotations

from beholder.core.catalog import Catalog
from beholder.studies.apa.study import APA
from beholder.studies.disparity.study import DISPARITY
from beholder.studies.gras.study import GRAS
from beholder.studies.perception.study import PERCEPTION
from beholder.studies.pfi.study import PFI
from beholder.studies.study import Benchmark

BENCHMARKS: Catalog[Benchmark] = Catalog(
    "benchmark", {benchmark.name: benchmark for benchmark in (APA, PFI, GRAS, PERCEPTION, DISPARITY)}
)
